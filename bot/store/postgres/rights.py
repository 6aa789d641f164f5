"""Rights in Postgres."""

from datetime import timedelta

from bot.domain.ids import PersonId
from bot.domain.records import RightsGrant
from bot.domain.rights import Rights
from bot.ports import Clock
from bot.store.postgres.database import Database


class PostgresRights:
    """Rights by person and source."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def note(self, person: PersonId, source: str, rights: Rights) -> None:
        await self._database.row(
            "rights.note",
            person,
            source,
            sorted(rights.credentials),
            rights.is_admin,
            rights.is_creator,
            self._clock.now(),
        )

    async def forget(self, person: PersonId, source: str) -> bool:
        return await self._database.row("rights.forget", person, source) is not None

    async def of(self, person: PersonId) -> Rights:
        found = Rights()
        for row in await self._database.rows("rights.of", person):
            held = frozenset(row["credentials"])
            found |= Rights(held, is_admin=row["is_admin"], is_creator=row["is_creator"])
        return found

    async def stale(self, kind: str, age: timedelta, limit: int) -> tuple[RightsGrant, ...]:
        before = self._clock.now() - age
        rows = await self._database.rows("rights.stale", f"{kind}:", before, limit)
        return tuple(RightsGrant(PersonId(row["person"]), row["source"]) for row in rows)
