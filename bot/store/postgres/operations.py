"""How the database is, and what it has seen, in Postgres."""

from datetime import datetime

from bot.domain.records import Schema
from bot.domain.tally import Tally
from bot.ports import Clock
from bot.store.migrate import known_migrations
from bot.store.postgres.database import Database


class PostgresOperations:
    """Counts which triggers keep, so that to read them costs the same however much there is."""

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
