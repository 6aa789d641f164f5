"""Accounts in Postgres."""

from bot.domain.errors import StoreError
from bot.domain.ids import PersonId
from bot.domain.person import Person
from bot.ports import Clock
from bot.store.postgres import rows
from bot.store.postgres.database import Database


class PostgresPeople:
    """Accounts, by id and by identity."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def ensure(self, identity: str, name: str) -> Person:
        row = await self._database.row("people.ensure", identity, name, self._clock.now())
        if row is None:
            raise StoreError(f"the account {identity!r} could not be stored")
        return rows.person(row)

    async def get(self, person: PersonId) -> Person | None:
        row = await self._database.row("people.get", person)
        return None if row is None else rows.person(row)

    async def find(self, identity: str) -> Person | None:
        row = await self._database.row("people.find", identity)
        return None if row is None else rows.person(row)
