"""Counts, and the state of the database, in Postgres."""

from datetime import datetime

from bot.domain.accounts import HOUSE
from bot.domain.ids import BoardId
from bot.domain.records import DayCount, Schema, Tally, Usage
from bot.ports import Clock
from bot.store.migrate import known_migrations
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


class PostgresOperations:
    """Counters kept by triggers, so that reading them costs the same at any size."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def schema(self) -> Schema:
        row = await self._database.row("operations.schema")
        return Schema(0 if row is None else row["present"], known_migrations())

    async def tallies(self) -> tuple[Tally, ...]:
        return tuple(
            Tally(
                gpu=row["gpu"],
                mode=row["mode"],
                verdict=row["verdict"],
                evaluations=row["evaluations"],
                judged_s=row["judged_s"],
                waited_s=row["waited_s"],
                judged=tuple(row["judged"]),
                waited=tuple(row["waited"]),
            )
            for row in await self._database.rows("operations.tallies")
        )

    async def lost_leases(self) -> dict[str, int]:
        found = await self._database.rows("operations.lost_leases")
        return {row["gpu"]: row["jobs"] for row in found}

    async def waiting_since(self) -> dict[str, datetime]:
        found = await self._database.rows("operations.waiting_since", self._clock.now())
        return {row["gpu"]: row["since"] for row in found}
