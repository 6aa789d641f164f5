"""Live workers in Postgres."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from asyncpg import Record
from pydantic import TypeAdapter, ValidationError

from bot.domain.job import Worker
from bot.ports import Clock
from bot.ports.queue import EMPTY
from bot.store.postgres.database import Database
from runners.contract.runner import Capabilities

_OFFERS = TypeAdapter(dict[str, Capabilities])


class PostgresWorkers:
    """One row per worker, valid until its lease expires."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def announce(
        self,
        worker: str,
        gpus: Sequence[str] | None,
        lease: timedelta,
        offers: Mapping[str, Capabilities] = EMPTY,
    ) -> None:
        now = self._clock.now()
        offered = None if gpus is None else list(gpus)
        text = _OFFERS.dump_json(dict(offers)).decode()
        await self._database.rows("workers.announce", worker, offered, now + lease, now, text)

    async def leave(self, worker: str) -> None:
        await self._database.rows("workers.leave", worker)

    async def reporting(self) -> frozenset[str]:
        now = self._clock.now()
        return frozenset(each.name for each in await self.alive() if not each.is_silent(now))

    async def lost(self) -> tuple[Worker, ...]:
        return tuple(
            Worker(row["name"], None if row["gpus"] is None else tuple(row["gpus"]))
            for row in await self._database.rows("workers.lost", self._clock.now())
        )

    async def alive(self) -> tuple[Worker, ...]:
        return tuple(
            Worker(
                row["name"],
                None if row["gpus"] is None else tuple(row["gpus"]),
                _offers(row),
                row["seen_at"],
                row["running"],
            )
            for row in await self._database.rows("workers.alive", self._clock.now())
        )


def _offers(row: Record) -> Mapping[str, Capabilities]:
    try:
        return _OFFERS.validate_json(row["offers"] or "{}")
    except ValidationError:  # a worker of another version wrote it
        return EMPTY
