"""Competitions in Postgres."""

from datetime import datetime

from asyncpg import Record, UniqueViolationError

from bot.domain.board import Board, Viewer
from bot.domain.competition import Competition, NewCompetition, PointsRule
from bot.domain.ids import CompetitionId, PersonId
from bot.ports import Clock
from bot.store.errors import competition_exists, competition_gone
from bot.store.postgres.boards import board_of
from bot.store.postgres.database import Connection, Database, query


class PostgresCompetitions:
    """Competitions by name, each with its boards in order."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put(self, new: NewCompetition, onto: CompetitionId | None = None) -> Competition:
        content = new.description, list(new.points.ranks), new.opens_at
        async with self._database.transaction() as connection:
            number: int | None = onto
            if onto is None:
                try:
                    number = await connection.fetchval(
                        query("competitions.put"),
                        new.name,
                        new.creator,
                        *content,
                        self._clock.now(),
                    )
                except UniqueViolationError as error:
                    raise competition_exists(new.name) from error
                name = new.name
            else:
                name = await connection.fetchval(query("competitions.change"), onto, *content)
                if name is None:
                    raise competition_gone(new.name)
            await connection.execute(query("competitions.clear"), number)
            await connection.execute(query("competitions.enter"), number, list(new.boards))
            stored = await connection.fetch(query("competitions.find"), name)
            (competition,) = await self._with_boards(connection, stored)
        return competition

    async def delete(self, competition: CompetitionId) -> bool:
        async with self._database.transaction() as connection:
            if await connection.fetchval(query("competitions.lock"), competition) is None:
                return False
            for name in ("competitions.drop_outbox", "competitions.clear", "competitions.drop"):
                await connection.execute(query(name), competition)
        return True

    async def lock(self, competition: CompetitionId) -> bool:
        return await self._database.row("competitions.lock", competition) is not None

    async def find(self, name: str) -> Competition | None:
        found = await self._read("competitions.find", name)
        return found[0] if found else None

    async def count_of(self, creator: PersonId) -> int:
        row = await self._database.row("competitions.count_of", creator)
        return 0 if row is None else int(row["number"])

    async def known_to(
        self, viewer: Viewer, *, after: str | None = "", limit: int | None = None
    ) -> tuple[Competition, ...]:
        credentials = [*viewer.credentials]
        return await self._read(
            "competitions.known_to", viewer.sees_all, viewer.person, credentials, after, limit
        )

    async def unannounced(self) -> tuple[Competition, ...]:
        return await self._read("competitions.unannounced", self._clock.now())

    async def _read(self, name: str, *values: object) -> tuple[Competition, ...]:
        async with self._database.transaction() as connection:
            return await self._with_boards(connection, await connection.fetch(query(name), *values))

    async def _with_boards(
        self, connection: Connection, rows: list[Record]
    ) -> tuple[Competition, ...]:
        now = self._clock.now()
        boards: dict[int, list[Board]] = {row["id"]: [] for row in rows}
        for row in await connection.fetch(query("competitions.boards"), list(boards)):
            boards[row["competition"]].append(board_of(row, now))
        return tuple(_competition(row, boards[row["id"]]) for row in rows)

    async def announce_opening(self, competition: CompetitionId, opened_at: datetime) -> bool:
        return await self._announce("competitions.announce_opening", competition, opened_at)

    async def announce_closing(self, competition: CompetitionId, closed_at: datetime) -> bool:
        return await self._announce("competitions.announce_closing", competition, closed_at)

    async def _announce(self, name: str, competition: CompetitionId, moment: datetime) -> bool:
        return await self._database.row(name, competition, moment) is not None


def _competition(row: Record, boards: list[Board]) -> Competition:
    """Convert a row of `competitions`."""
    return Competition(
        id=CompetitionId(row["id"]),
        name=row["name"],
        creator=PersonId(row["creator"]),
        description=row["description"],
        points=PointsRule(tuple(row["ranks"])),
        opens_at=row["opens_at"],
        boards=tuple(boards),
        opening_announced=row["opening_announced"],
        closing_announced=row["closing_announced"],
    )
