"""Counts over everything, made by Postgres."""

from datetime import datetime

from bot.domain.ids import BoardId
from bot.domain.person import HOUSE
from bot.domain.records import DayCount, Usage
from bot.store.postgres.database import Database
from runners.contract.verdict import Verdict


class PostgresStatistics:
    """Counts, one query each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def people(self) -> int:
        row = await self._database.row("statistics.people", HOUSE)
        return 0 if row is None else int(row["count"])

    async def participants(self) -> dict[BoardId, int]:
        found = await self._database.rows("statistics.participants")
        return {BoardId(row["board"]): row["people"] for row in found}

    async def days(self, since: datetime) -> tuple[DayCount, ...]:
        found = await self._database.rows("statistics.days", since)
        return tuple(DayCount(row["day"], row["submissions"], row["people"]) for row in found)

    async def verdicts(self, since: datetime) -> dict[Verdict, int]:
        found = await self._database.rows("statistics.verdicts", since)
        return {Verdict(row["verdict"]): row["count"] for row in found}

    async def usage(self, since: datetime) -> tuple[Usage, ...]:
        found = await self._database.rows("statistics.usage", since)
        return tuple(
            Usage(row["board"], row["person"], row["gpu"], row["evaluations"], row["seconds"])
            for row in found
        )
