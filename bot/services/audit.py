"""Stores a change together with its audit entry; reads the audit log, with names."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from bot.domain.ids import AuditId, PersonId
from bot.domain.records import AuditEntry, AuditPage, NamedAuditEntry
from bot.ports import Store
from bot.ports.records import AUDIT_REQUEST

MOST_ROWS = 100_000
"""The most rows of the audit log that are returned at once."""


@contextmanager
def recorded_once(request: str) -> Iterator[None]:
    """Record a decision of this request once, also if the request is handled again.

    It is recorded again if something else was decided about the same subject since.
    """
    before = AUDIT_REQUEST.set(request)
    try:
        yield
    finally:
        AUDIT_REQUEST.reset(before)


@asynccontextmanager
async def audited(
    store: Store, actor: PersonId | None, action: str, subject: str, *, reason: str = ""
) -> AsyncIterator[Store]:
    """Open a transaction that ends with its audit entry; store nothing when the block raises."""
    async with store.transaction() as tx:
        yield tx
        await tx.audit.record(actor, action, subject, reason)


async def audit_page(store: Store, number: int, size: int) -> AuditPage:
    """Return one page of `size` rows; a page after the last one is empty."""
    rows = await store.audit.rows(size + 1, number * size)
    return AuditPage(number, await _with_names(store, rows[:size]), more=len(rows) > size)


async def audit_rows(
    store: Store, limit: int, before: AuditId | None
) -> tuple[NamedAuditEntry, ...]:
    """Return the newest audit entries, newest first; with `before`, only older ones than that."""
    return await _with_names(store, await store.audit.rows(limit, before=before))


async def whole_audit(store: Store) -> tuple[NamedAuditEntry, ...]:
    """Return every audit entry, newest first, up to `MOST_ROWS`."""
    return await _with_names(store, await store.audit.rows(MOST_ROWS))


async def _with_names(store: Store, rows: tuple[AuditEntry, ...]) -> tuple[NamedAuditEntry, ...]:
    names: dict[PersonId, str] = {}
    for actor in {row.actor for row in rows if row.actor is not None}:
        person = await store.people.get(actor)
        if person is not None:
            names[actor] = person.name
    return tuple(
        NamedAuditEntry(row, None if row.actor is None else names.get(row.actor)) for row in rows
    )
