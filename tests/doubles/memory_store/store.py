"""Puts the roles of the in-memory store together over one set of tables."""

from bot.ports import Clock
from bot.store.subscriptions import Subscriptions
from tests.doubles.memory_store.accounts import MemoryPeople, MemoryRights, MemoryTokens
from tests.doubles.memory_store.boards import MemoryBoards
from tests.doubles.memory_store.delivery import (
    MemoryDisplays,
    MemoryListeners,
    MemoryOutbox,
    MemoryReleases,
)
from tests.doubles.memory_store.interactions import MemoryInteractions
from tests.doubles.memory_store.moderation import MemoryAudit, MemoryModeration
from tests.doubles.memory_store.queue import MemoryJobs, MemoryWorkers
from tests.doubles.memory_store.results import MemoryReferences, MemoryResults
from tests.doubles.memory_store.statistics import MemoryOperations, MemoryStatistics
from tests.doubles.memory_store.submissions import MemoryRequests, MemorySubmissions
from tests.doubles.memory_store.tables import Tables


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
