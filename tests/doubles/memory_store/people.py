"""Accounts in memory."""

from dataclasses import replace

from bot.domain.ids import PersonId
from bot.domain.person import Person
from bot.store.text import storable
from tests.doubles.memory_store.tables import Tables


class MemoryPeople:
    """Accounts, by id and by identity."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def ensure(self, identity: str, name: str) -> Person:
        known = await self.find(identity)
        if known is None:
            person_id = PersonId(self._tables.next_id())
            now = self._tables.clock.now()
            known = Person(person_id, storable(identity), storable(name), now)
        person = replace(known, name=storable(name))
        self._tables.people[person.id] = person
        return person

    async def get(self, person: PersonId) -> Person | None:
        return self._tables.people.get(person)

    async def find(self, identity: str) -> Person | None:
        wanted = storable(identity)
        people = self._tables.people.values()
        return next((person for person in people if person.identity == wanted), None)
