"""Competitions in memory."""

from dataclasses import replace
from datetime import datetime

from bot.domain.competition import Competition, NewCompetition
from bot.domain.ids import CompetitionId
from bot.store.postgres.database import storable
from tests.doubles.memory_store.tables import CompetitionRow, Tables


class MemoryCompetitions:
    """Competitions by name, each with its boards in order."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def put(self, new: NewCompetition) -> Competition:
        stored = replace(new, name=storable(new.name), description=storable(new.description))
        rows = self._tables.competitions.values()
        known = next((each for each in rows if each.new.name == stored.name), None)
        if known is None:
            row = CompetitionRow(CompetitionId(self._tables.next_id()), stored)
        else:
            row = replace(known, new=replace(stored, creator=known.new.creator))
        self._tables.competitions[row.id] = row
        return self._competition(row)

    async def find(self, name: str) -> Competition | None:
        return next((each for each in await self.all() if each.name == storable(name)), None)

    async def all(self) -> tuple[Competition, ...]:
        found = map(self._competition, self._tables.competitions.values())
        return tuple(sorted(found, key=lambda each: each.name))

    async def announce_opening(self, competition: CompetitionId, opened_at: datetime) -> bool:
        row = self._tables.competitions.get(competition)
        if row is None or row.opening_announced is not None:
            return False
        self._tables.competitions[competition] = replace(row, opening_announced=opened_at)
        return True

    async def announce_closing(self, competition: CompetitionId, closed_at: datetime) -> bool:
        row = self._tables.competitions.get(competition)
        if row is None or row.closing_announced == closed_at:
            return False
        self._tables.competitions[competition] = replace(row, closing_announced=closed_at)
        return True

    def _competition(self, row: CompetitionRow) -> Competition:
        new, now = row.new, self._tables.clock.now()
        boards = (self._tables.boards[each] for each in new.boards)
        return Competition(
            id=row.id,
            name=new.name,
            creator=new.creator,
            description=new.description,
            points=new.points,
            opens_at=new.opens_at,
            boards=tuple(replace(each, rules=each.rules.at(now)) for each in boards),
            opening_announced=row.opening_announced,
            closing_announced=row.closing_announced,
        )
