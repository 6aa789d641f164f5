"""Gives the record of decisions in pages, with the names of those who decided."""

from bot.domain.ids import AuditId, PersonId
from bot.domain.records import AuditEntry, AuditPage, NamedAuditEntry
from bot.ports import Store

MOST_ROWS = 100_000
"""Of the whole record in one piece."""


async def audit_page(store: Store, number: int, size: int) -> AuditPage:
    """One page of so many rows; a page behind the last one is empty."""
    rows = await store.audit.rows(size + 1, number * size)
    return AuditPage(number, await _named(store, rows[:size]), more=len(rows) > size)


async def audit_rows(
    store: Store, limit: int, before: AuditId | None
) -> tuple[NamedAuditEntry, ...]:
    """The newest decisions first, of those made before one."""
    return await _named(store, await store.audit.rows(limit, before=before))


async def whole_audit(store: Store) -> tuple[NamedAuditEntry, ...]:
    """Every decision, newest first."""
    return await _named(store, await store.audit.rows(MOST_ROWS))


async def _named(store: Store, rows: tuple[AuditEntry, ...]) -> tuple[NamedAuditEntry, ...]:
    names: dict[PersonId, str] = {}
    for actor in {row.actor for row in rows if row.actor is not None}:
        person = await store.people.get(actor)
        if person is not None:
            names[actor] = person.name
    return tuple(
        NamedAuditEntry(row, None if row.actor is None else names.get(row.actor)) for row in rows
    )
