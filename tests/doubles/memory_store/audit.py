"""The record of decisions in memory."""

from bot.domain.ids import AuditId, PersonId
from bot.ports import AuditRow
from tests.doubles.memory_store.tables import Tables


class MemoryAudit:
    """Rows that are added and never changed."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def record(self, actor: PersonId | None, action: str, subject: str, reason: str) -> None:
        self._tables.decided(actor, action, subject, reason)

    async def rows(
        self, limit: int = 100, skip: int = 0, before: AuditId | None = None
    ) -> tuple[AuditRow, ...]:
        newest = reversed(self._tables.audit)
        found = [row for row in newest if before is None or row.id < before]
        return tuple(found[skip : skip + limit])
