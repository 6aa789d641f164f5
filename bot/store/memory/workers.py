"""The workers that live, in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bot.domain.job import JobState
from bot.ports import Worker
from bot.ports.queue import EMPTY
from bot.store.memory.tables import Tables
from runners.contract.runner import Capabilities


class MemoryWorkers:
    """Workers by name, each of which counts until its lease runs out."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[str, tuple[Worker, datetime]] = {}

    async def announce(
        self,
        worker: str,
        gpus: Sequence[str] | None,
        lease: timedelta,
        offers: Mapping[str, Capabilities] = EMPTY,
    ) -> None:
        offered, now = None if gpus is None else tuple(gpus), self._tables.clock.now()
        self._known[worker] = Worker(worker, offered, dict(offers), now), now + lease

    async def leave(self, worker: str) -> None:
        self._known.pop(worker, None)

    async def reporting(self) -> frozenset[str]:
        now = self._tables.clock.now()
        return frozenset(each.name for each in await self.alive() if not each.is_silent(now))

    async def alive(self) -> tuple[Worker, ...]:
        now = self._tables.clock.now()
        return tuple(
            replace(known, running=self._running(known.name))
            for _, (known, until) in sorted(self._known.items())
            if until >= now
        )

    def _running(self, worker: str) -> int:
        jobs = self._tables.jobs.values()
        return sum(job.state is JobState.RUNNING and job.worker == worker for job in jobs)
