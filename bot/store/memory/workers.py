"""The workers that live, in memory."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.ports import Clock, Worker


class MemoryWorkers:
    """Workers by name, each of which counts until its lease runs out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, tuple[Worker, datetime]] = {}

    async def announce(self, worker: str, gpus: Sequence[str] | None, lease: timedelta) -> None:
        offered = None if gpus is None else tuple(gpus)
        self._known[worker] = Worker(worker, offered), self._clock.now() + lease

    async def leave(self, worker: str) -> None:
        self._known.pop(worker, None)

    async def alive(self) -> tuple[Worker, ...]:
        now = self._clock.now()
        return tuple(known for _, (known, until) in sorted(self._known.items()) if until >= now)
