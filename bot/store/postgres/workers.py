"""The workers that live, in Postgres."""

from collections.abc import Sequence
from datetime import timedelta

from bot.ports import Clock, Worker
from bot.store.postgres.database import Database


class PostgresWorkers:
    """One row per worker, which counts until its lease runs out."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def announce(self, worker: str, gpus: Sequence[str] | None, lease: timedelta) -> None:
        now = self._clock.now()
        offered = None if gpus is None else list(gpus)
        await self._database.rows("workers.announce", worker, offered, now + lease, now)

    async def leave(self, worker: str) -> None:
        await self._database.rows("workers.leave", worker)

    async def alive(self) -> tuple[Worker, ...]:
        found = await self._database.rows("workers.alive", self._clock.now())
        return tuple(
            Worker(row["name"], None if row["gpus"] is None else tuple(row["gpus"]))
            for row in found
        )
