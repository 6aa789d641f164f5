"""Combines the roles of the Postgres store over one pool and one listening connection."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from bot.domain.costs import NO_PRICES, Prices
from bot.ports import Clock
from bot.store.postgres import (
    accounts,
    admin,
    alerts,
    boards,
    confirmations,
    costs,
    delivery,
    publications,
    queue,
    results,
    submissions,
    workers,
)
from bot.store.postgres.competitions import PostgresCompetitions
from bot.store.postgres.database import Database, open_pool
from bot.store.postgres.events import Subscriptions, listening


class PostgresStore:
    """All roles of the store, shared by all processes that use the same database."""

    def __init__(
        self, database: Database, events: Subscriptions, clock: Clock, prices: Prices = NO_PRICES
    ) -> None:
        self._database = database
        self._clock = clock
        self.people = accounts.PostgresPeople(database, clock)
        self.boards = boards.PostgresBoards(database, clock)
        self.competitions = PostgresCompetitions(database, clock)
        self.submissions = submissions.PostgresSubmissions(database, clock)
        self.jobs = queue.PostgresJobs(database, clock, prices)
        self.costs = costs.PostgresCosts(database, prices)
        self.workers = workers.PostgresWorkers(database, clock)
        self.results = results.PostgresResults(database)
        self.references = results.PostgresReferences(database, clock)
        self.confirmations = confirmations.PostgresConfirmations(database, clock)
        self.finals = confirmations.PostgresFinals(database, clock)
        self.requests = submissions.PostgresRequests(database, clock, self.submissions)
        self.moderation = admin.PostgresModeration(database, clock)
        self.invites = boards.PostgresInviteLinks(database, clock)
        self.alerts = alerts.PostgresAlerts(database, clock)
        self.tokens = accounts.PostgresTokens(database, clock)
        self.rights = accounts.PostgresRights(database, clock)
        self.displays = delivery.PostgresDisplays(database, clock)
        self.board_threads = delivery.PostgresBoardThreads(database, clock)
        self.publications = publications.PostgresPublications(database, clock)
        self.check_runs = publications.PostgresCheckRuns(database, clock)
        self.interactions = delivery.PostgresInteractions(database, clock)
        self.statistics = admin.PostgresStatistics(database)
        self.operations = admin.PostgresOperations(database, clock)
        self.listeners = delivery.PostgresListeners(database)
        self.outbox = delivery.PostgresOutbox(database, clock)
        self.audit = admin.PostgresAudit(database, clock)
        self.events = events

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["PostgresStore"]:
        """Yield the same roles on one connection; see `bot.ports.Store`."""
        async with self._database.transaction() as connection:
            bound = replace(self._database, bound=connection)
            inner = PostgresStore(bound, self.events, self._clock, self.costs.prices)
            inner.results = results.PostgresResults(bound, self.results)
            yield inner


@asynccontextmanager
async def open_store(
    dsn: str, clock: Clock, prices: Prices = NO_PRICES
) -> AsyncIterator[PostgresStore]:
    """Yield the store in a migrated database; SetupError when it cannot be reached.

    While the database is unavailable, operations raise StoreError; they work again once it is back.
    """
    async with open_pool(dsn) as database, listening(dsn) as events:
        yield PostgresStore(database, events, clock, prices)
