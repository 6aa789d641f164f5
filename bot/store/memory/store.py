"""Puts the roles of the in-memory store together over one set of tables."""

from bot.ports import Clock
from bot.store.memory.audit import MemoryAudit
from bot.store.memory.boards import MemoryBoards
from bot.store.memory.displays import MemoryDisplays
from bot.store.memory.interactions import MemoryInteractions
from bot.store.memory.jobs import MemoryJobs
from bot.store.memory.moderation import MemoryModeration
from bot.store.memory.news import MemoryListeners, MemoryOutbox
from bot.store.memory.operations import MemoryOperations
from bot.store.memory.people import MemoryPeople
from bot.store.memory.references import MemoryReferences
from bot.store.memory.releases import MemoryReleases
from bot.store.memory.requests import MemoryRequests
from bot.store.memory.results import MemoryResults
from bot.store.memory.rights import MemoryRights
from bot.store.memory.statistics import MemoryStatistics
from bot.store.memory.submissions import MemorySubmissions
from bot.store.memory.tables import Tables
from bot.store.memory.tokens import MemoryTokens
from bot.store.memory.workers import MemoryWorkers
from bot.store.subscriptions import Subscriptions


class MemoryStore:
    """Every role of the store, kept until the process ends."""

    def __init__(self, clock: Clock) -> None:
        tables = Tables(clock, Subscriptions())
        self.people = MemoryPeople(tables)
        self.boards = MemoryBoards(tables)
        self.submissions = MemorySubmissions(tables)
        self.jobs = MemoryJobs(tables)
        self.workers = MemoryWorkers(tables)
        self.results = MemoryResults(tables)
        self.references = MemoryReferences(tables, self.submissions)
        self.requests = MemoryRequests(tables, self.submissions)
        self.moderation = MemoryModeration(tables)
        self.tokens = MemoryTokens(tables)
        self.rights = MemoryRights(clock)
        self.displays = MemoryDisplays(tables)
        self.releases = MemoryReleases(clock)
        self.interactions = MemoryInteractions(clock)
        self.statistics = MemoryStatistics(tables)
        self.operations = MemoryOperations(tables)
        self.listeners = MemoryListeners()
        self.outbox = MemoryOutbox(tables)
        self.audit = MemoryAudit(tables)
        self.events = tables.subscriptions
