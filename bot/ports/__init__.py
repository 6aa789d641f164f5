"""The interfaces that services need, by role; `bot.store` implements each in Postgres."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bot.ports.admin import Moderation, Operations, Statistics
from bot.ports.delivery import Displays, Interactions, Listeners, Outbox
from bot.ports.outside import Identities
from bot.ports.queue import NO_RUNNERS, Clock, Events, Jobs, Releases, WorkerQueue, Workers
from bot.ports.records import (
    Audit,
    Boards,
    EvaluationServerRequests,
    People,
    References,
    Results,
    RightsStore,
    Submissions,
    Tokens,
)

__all__ = [
    "NO_RUNNERS",
    "Audit",
    "Boards",
    "Clock",
    "Displays",
    "EvaluationServerRequests",
    "Events",
    "Identities",
    "Interactions",
    "Jobs",
    "Listeners",
    "Moderation",
    "Operations",
    "Outbox",
    "People",
    "References",
    "Releases",
    "Results",
    "RightsStore",
    "Statistics",
    "Store",
    "Submissions",
    "Tokens",
    "WorkerQueue",
    "Workers",
]


class Store(Protocol):
    """All roles of the store."""

    def transaction(self) -> AbstractAsyncContextManager["Store"]:
        """Yield the same roles on one connection: everything in the block is committed, or nothing.

        Nothing is stored when the block raises, is cancelled, or loses its connection. When the end
        of the block raises, everything may still be stored: only the response was lost. Notices are
        sent with the commit. A nested transaction is a savepoint, rolled back alone when only its
        block raises. Inside the block, await only the yielded store, one call at a time, and catch
        none of its errors; do not use that store after the block. The roles lock rows, so call them
        in this order: boards, submissions, jobs. Of two deadlocked transactions one ends with a
        StoreError.
        """

    @property
    def people(self) -> People: ...
    @property
    def boards(self) -> Boards: ...
    @property
    def submissions(self) -> Submissions: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def results(self) -> Results: ...
    @property
    def references(self) -> References: ...
    @property
    def requests(self) -> EvaluationServerRequests: ...
    @property
    def moderation(self) -> Moderation: ...
    @property
    def displays(self) -> Displays: ...
    @property
    def releases(self) -> Releases: ...
    @property
    def interactions(self) -> Interactions: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def rights(self) -> RightsStore: ...
    @property
    def statistics(self) -> Statistics: ...
    @property
    def operations(self) -> Operations: ...
    @property
    def listeners(self) -> Listeners: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def events(self) -> Events: ...
