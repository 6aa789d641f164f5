"""Puts the roles of the in-memory store together over one set of tables."""

from bot.ports import Clock
from bot.store.subscriptions import Subscriptions
from tests.doubles.memory_store.audit import MemoryAudit
from tests.doubles.memory_store.boards import MemoryBoards
from tests.doubles.memory_store.displays import MemoryDisplays
from tests.doubles.memory_store.interactions import MemoryInteractions
from tests.doubles.memory_store.jobs import MemoryJobs
from tests.doubles.memory_store.moderation import MemoryModeration
from tests.doubles.memory_store.news import MemoryListeners, MemoryOutbox
from tests.doubles.memory_store.operations import MemoryOperations
from tests.doubles.memory_store.people import MemoryPeople
from tests.doubles.memory_store.references import MemoryReferences
from tests.doubles.memory_store.releases import MemoryReleases
from tests.doubles.memory_store.requests import MemoryRequests
from tests.doubles.memory_store.results import MemoryResults
from tests.doubles.memory_store.rights import MemoryRights
from tests.doubles.memory_store.statistics import MemoryStatistics
from tests.doubles.memory_store.submissions import MemorySubmissions
from tests.doubles.memory_store.tables import Tables
from tests.doubles.memory_store.tokens import MemoryTokens
from tests.doubles.memory_store.workers import MemoryWorkers


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
