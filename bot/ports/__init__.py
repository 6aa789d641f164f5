"""What services need from outside, by role; `bot.store` offers each in Postgres."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bot.ports.accounts import RightsStore, Tokens
from bot.ports.admin import Moderation, Operations, Statistics
from bot.ports.delivery import Displays, Interactions, Listeners, Outbox
from bot.ports.outside import Identities
from bot.ports.publications import Releases
from bot.ports.queue import NO_RUNNERS, Clock, Events, Jobs, WorkerQueue, Workers
from bot.ports.records import (
    Audit,
    Boards,
    EvaluationServerRequests,
    People,
    References,
    Results,
    Submissions,
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
    """Every role of the store at once."""

    def transaction(self) -> AbstractAsyncContextManager["Store"]:
        """The same roles on one connection: everything in the block is committed, or nothing.

        Nothing is stored when the block raises, is cancelled, or loses its connection. Where the
        end of the block raises, everything may be stored all the same: the answer was lost. Notices
        are sent with the commit. A transaction within one is a part of it, undone alone when only
        that block raises. In the block nothing but its own store is awaited, one call at a time,
        and no error of it is caught; the store is not used after the block. Roles are called in one
        order, since each locks rows: boards, submissions, jobs. Of two transactions that wait for
        each other one ends with a StoreError.
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
