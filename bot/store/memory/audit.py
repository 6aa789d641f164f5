"""The record of decisions in memory."""

from bot.domain.ids import PersonId
from bot.ports import AuditRow
from bot.store.memory.tables import Tables
from bot.store.text import storable


class MemoryAudit:
    """Rows that are added and never changed."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def record(self, actor: PersonId | None, action: str, subject: str, reason: str) -> None:
        now = self._tables.clock.now()
        texts = storable(action), storable(subject), storable(reason)
        self._tables.audit.append(AuditRow(actor, *texts, now))

    async def rows(self, limit: int = 100, skip: int = 0) -> tuple[AuditRow, ...]:
        return tuple(reversed(self._tables.audit))[skip : skip + limit]
