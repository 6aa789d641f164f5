"""The record of decisions in Postgres."""

from bot.domain.ids import AuditId, PersonId
from bot.domain.records import AuditEntry
from bot.ports import Clock
from bot.store.postgres.database import Database


class PostgresAudit:
    """Rows that a trigger keeps from being changed."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def record(self, actor: PersonId | None, action: str, subject: str, reason: str) -> None:
        await self._database.rows("audit.record", actor, action, subject, reason, self._clock.now())

    async def rows(
        self, limit: int = 100, skip: int = 0, before: AuditId | None = None
    ) -> tuple[AuditEntry, ...]:
        found = await self._database.rows("audit.rows", limit, skip, before)
        return tuple(
            AuditEntry(
                id=AuditId(row["id"]),
                actor=None if row["actor"] is None else PersonId(row["actor"]),
                action=row["action"],
                subject=row["subject"],
                reason=row["reason"],
                at=row["at"],
            )
            for row in found
        )
