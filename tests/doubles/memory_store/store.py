"""Combines the roles of the in-memory store over one set of tables."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from copy import copy

from typing_extensions import override

from bot.domain.costs import NO_PRICES, Prices
from bot.domain.job import Notice
from bot.ports import Clock
from bot.store.postgres.events import Subscriptions
from tests.doubles.memory_store.accounts import MemoryPeople, MemoryRights, MemoryTokens
from tests.doubles.memory_store.alerts import MemoryAlerts
from tests.doubles.memory_store.boards import MemoryBoards, MemoryInviteLinks
from tests.doubles.memory_store.competitions import MemoryCompetitions
from tests.doubles.memory_store.confirmations import MemoryConfirmations, MemoryFinals
from tests.doubles.memory_store.costs import MemoryCosts
from tests.doubles.memory_store.delivery import (
    MemoryBoardThreads,
    MemoryDisplays,
    MemoryListeners,
    MemoryOutbox,
)
from tests.doubles.memory_store.interactions import MemoryInteractions
from tests.doubles.memory_store.moderation import MemoryAudit, MemoryModeration
from tests.doubles.memory_store.publications import MemoryCheckRuns, MemoryPublications
from tests.doubles.memory_store.queue import MemoryJobs, MemoryWorkers
from tests.doubles.memory_store.results import MemoryReferences, MemoryResults
from tests.doubles.memory_store.statistics import MemoryOperations, MemoryStatistics
from tests.doubles.memory_store.submissions import MemoryRequests, MemorySubmissions
from tests.doubles.memory_store.tables import Tables


class MemoryStore:
    """Every role of the store; its data is lost when the process ends."""

    def __init__(self, clock: Clock, prices: Prices = NO_PRICES) -> None:
        self._tables = tables = Tables(clock, Subscriptions(), prices=prices)
        self._turn: AbstractAsyncContextManager[None] = asyncio.Lock()
        self.people = MemoryPeople(tables)
        self.boards = MemoryBoards(tables)
        self.competitions = MemoryCompetitions(tables)
        self.submissions = MemorySubmissions(tables)
        self.jobs = MemoryJobs(tables)
        self.workers = MemoryWorkers(tables)
        self.results = MemoryResults(tables)
        self.references = MemoryReferences(tables, self.submissions)
        self.confirmations = MemoryConfirmations(tables, self.submissions)
        self.finals = MemoryFinals(tables)
        self.requests = MemoryRequests(tables, self.submissions)
        self.moderation = MemoryModeration(tables)
        self.invites = MemoryInviteLinks(tables, self.boards)
        self.costs = MemoryCosts(tables)
        self.alerts = MemoryAlerts(tables)
        self.rights = MemoryRights(clock)
        self.tokens = MemoryTokens(tables, self.rights)
        self.displays = MemoryDisplays(tables)
        self.board_threads = MemoryBoardThreads(tables)
        self.publications = MemoryPublications(tables)
        self.check_runs = MemoryCheckRuns(tables, self.publications)
        self.interactions = MemoryInteractions(clock)
        self.statistics = MemoryStatistics(tables)
        self.operations = MemoryOperations(tables)
        self.listeners = MemoryListeners()
        self.outbox = MemoryOutbox(tables)
        self.audit = MemoryAudit(tables)
        self.events = tables.subscriptions

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["MemoryStore"]:
        """Copy every row first and restore the copies on an error; send notices at the end."""
        async with self._turn:
            before, sender = [*self.state()], self._tables.subscriptions
            self._tables.subscriptions = held = _HeldBack()
            within = copy(self)
            within._turn = nullcontext()
            try:
                yield within
            except BaseException:
                for owner, name, value in before:
                    setattr(owner, name, value)
                raise
            finally:
                self._tables.subscriptions = sender
            for notice in held.notices:
                sender.publish(notice)

    def state(self) -> Iterator[tuple[object, str, object]]:
        """The rows of the tables and roles, as owner, attribute, and a copy of its rows."""
        roles = [role for name, role in vars(self).items() if name[0] != "_" and name != "events"]
        for owner in (self._tables, *roles):
            for name in getattr(owner, "__slots__", None) or vars(owner):
                value = getattr(owner, name)
                yield owner, name, _copied(value)


class _HeldBack(Subscriptions):
    """Stores the notices of a transaction until it succeeds."""

    def __init__(self) -> None:
        super().__init__()
        self.notices: list[Notice] = []

    @override
    def publish(self, notice: Notice) -> None:
        self.notices.append(notice)


def _copied(value: object) -> object:
    """A container with copies of its rows; anything else as it is."""
    if isinstance(value, dict):
        rows = copy(value)
        for key, row in value.items():
            rows[key] = copy(row)
        return rows
    return copy(value) if isinstance(value, list | set) else value
