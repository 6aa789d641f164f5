"""Competitions in memory."""

from dataclasses import replace
from datetime import datetime

from bot.domain.board import Viewer
from bot.domain.competition import Competition, NewCompetition
from bot.domain.ids import CompetitionId, PersonId
from bot.domain.notifications import NotificationKind
from bot.store.errors import competition_exists, competition_gone
from bot.store.postgres.database import storable
from tests.doubles.memory_store.tables import CompetitionRow, Tables


class MemoryCompetitions:
    """Competitions by name, each with its boards in order."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def put(self, new: NewCompetition, onto: CompetitionId | None = None) -> Competition:
        stored = replace(new, name=storable(new.name), description=storable(new.description))
        if onto is None:
            if await self.find(new.name) is not None:
                raise competition_exists(new.name)
            row = CompetitionRow(CompetitionId(self._tables.next_id()), stored)
        elif (known := self._tables.competitions.get(onto)) is None:
            raise competition_gone(new.name)
        else:
            row = replace(
                known, new=replace(stored, name=known.new.name, creator=known.new.creator)
            )
        self._tables.competitions[row.id] = row
        return self._competition(row)

    async def delete(self, competition: CompetitionId) -> bool:
        keys = f"opening {competition} ", f"closing {competition} "
        for number, row in list(self._tables.outbox.items()):
            unsent = row.notification.kind is NotificationKind.COMPETITION and row.done_at is None
            if unsent and row.notification.key.startswith(keys):
                del self._tables.outbox[number]
        return self._tables.competitions.pop(competition, None) is not None

    async def lock(self, competition: CompetitionId) -> bool:
        return competition in self._tables.competitions

    async def find(self, name: str) -> Competition | None:
        return next((each for each in self._all() if each.name == storable(name)), None)

    async def count_of(self, creator: PersonId) -> int:
        return sum(each.creator == creator for each in self._all())

    async def known_to(
        self, viewer: Viewer, *, after: str | None = "", limit: int | None = None
    ) -> tuple[Competition, ...]:
        known = [each for each in self._all() if each.announced_to(viewer)]
        if after is None:
            known.sort(key=lambda each: each.opens_at, reverse=True)
            return tuple(known[:limit])
        return tuple([each for each in known if each.name > after][:limit])

    async def unannounced(self) -> tuple[Competition, ...]:
        now = self._tables.clock.now()
        return tuple(
            each
            for each in self._all()
            if each.has_opened(now)
            and (
                each.opening_announced is None
                or (each.has_closed(now) and each.closing_announced != each.closes_at)
            )
        )

    def _all(self) -> list[Competition]:
        found = map(self._competition, self._tables.competitions.values())
        return sorted(found, key=lambda each: each.name)

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
