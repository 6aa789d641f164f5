"""Combines the roles of the Postgres store over one pool and one listening connection."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from bot.ports import Clock
from bot.store.postgres.accounts import PostgresPeople, PostgresRights, PostgresTokens
from bot.store.postgres.boards import PostgresBoards, PostgresReleases
from bot.store.postgres.database import Database, open_pool
from bot.store.postgres.delivery import (
    PostgresDisplays,
    PostgresInteractions,
    PostgresListeners,
    PostgresOutbox,
)
from bot.store.postgres.events import Subscriptions, listening
from bot.store.postgres.moderation import PostgresAudit, PostgresModeration
from bot.store.postgres.queue import PostgresJobs, PostgresWorkers
from bot.store.postgres.results import PostgresReferences, PostgresResults
from bot.store.postgres.statistics import PostgresOperations, PostgresStatistics
from bot.store.postgres.submissions import PostgresRequests, PostgresSubmissions


class PostgresStore:
    """All roles of the store, shared by all processes that use the same database."""

    def __init__(self, database: Database, events: Subscriptions, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.people = PostgresPeople(database, clock)
        self.boards = PostgresBoards(database, clock)
        self.submissions = PostgresSubmissions(database, clock)
        self.jobs = PostgresJobs(database, clock)
        self.workers = PostgresWorkers(database, clock)
        self.results = PostgresResults(database)
        self.references = PostgresReferences(database, clock)
        self.requests = PostgresRequests(database, clock, self.submissions)
        self.moderation = PostgresModeration(database, clock)
        self.tokens = PostgresTokens(database, clock)
        self.rights = PostgresRights(database, clock)
        self.displays = PostgresDisplays(database, clock)
        self.releases = PostgresReleases(database, clock)
        self.interactions = PostgresInteractions(database, clock)
        self.statistics = PostgresStatistics(database)
        self.operations = PostgresOperations(database, clock)
        self.listeners = PostgresListeners(database)
        self.outbox = PostgresOutbox(database, clock)
        self.audit = PostgresAudit(database, clock)
        self.events = events

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["PostgresStore"]:
        """Yield the same roles on one connection; see `bot.ports.Store`."""
        async with self._database.transaction() as connection:
            bound = replace(self._database, bound=connection)
            yield PostgresStore(bound, self.events, self._clock)


@asynccontextmanager
async def open_store(dsn: str, clock: Clock) -> AsyncIterator[PostgresStore]:
    """Yield the store in a migrated database; SetupError when it cannot be reached.

    While the database is unavailable, operations raise StoreError; they work again once it is back.
    """
    async with open_pool(dsn) as database, listening(dsn) as events:
        yield PostgresStore(database, events, clock)
