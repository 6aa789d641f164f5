"""The interfaces that services need, by role; `bot.store` implements each in Postgres."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bot.ports import admin, delivery, queue, records
from bot.ports.outside import IdentityProvider
from bot.ports.queue import NO_RUNNERS, Clock, WorkerQueue

__all__ = ["NO_RUNNERS", "Clock", "IdentityProvider", "Store", "WorkerQueue"]


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
    def people(self) -> records.People: ...
    @property
    def boards(self) -> records.Boards: ...
    @property
    def submissions(self) -> records.Submissions: ...
    @property
    def jobs(self) -> queue.Jobs: ...
    @property
    def workers(self) -> queue.Workers: ...
    @property
    def results(self) -> records.Results: ...
    @property
    def references(self) -> records.References: ...
    @property
    def requests(self) -> records.EvaluationServerRequests: ...
    @property
    def moderation(self) -> admin.Moderation: ...
    @property
    def displays(self) -> delivery.Displays: ...
    @property
    def publications(self) -> queue.Publications: ...
    @property
    def interactions(self) -> delivery.Interactions: ...
    @property
    def tokens(self) -> records.Tokens: ...
    @property
    def rights(self) -> records.RightsStore: ...
    @property
    def statistics(self) -> admin.Statistics: ...
    @property
    def operations(self) -> admin.Operations: ...
    @property
    def listeners(self) -> delivery.Listeners: ...
    @property
    def outbox(self) -> delivery.Outbox: ...
    @property
    def audit(self) -> records.Audit: ...
    @property
    def events(self) -> queue.Events: ...
