"""Passes a runner's progress on at a rate that a database and a reader can bear."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

import structlog

from runners.contract.evaluation import Progress
from runners.contract.verdict import Stage

_log = structlog.get_logger(__name__)

_CLOSING_S = 5.0


class ProgressFeed:
    """Tells each change of stage at once, and counts within a stage every `every_s` at most."""

    def __init__(self, tell: Callable[[Progress], Awaitable[None]], every_s: float) -> None:
        self._tell = tell
        self._every_s = every_s
        self._pending: list[Progress] = []
        self._arrived = asyncio.Event()
        self._stage: Stage | None = None
        self._told_at = 0.0
        self._closed = False
        self._pump: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._pump = asyncio.create_task(self._run(), name="progress feed")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        self._arrived.set()
        if self._pump is None:
            return
        done, _ = await asyncio.wait({self._pump}, timeout=_CLOSING_S)
        if not done:
            self._pump.cancel()
        elif self._pump.exception() is not None:
            _log.error("progress was lost", action="progress-lost", exc_info=self._pump.exception())

    def put(self, progress: Progress) -> None:
        """Take one step from the runner; never blocks. Newer counts replace older ones."""
        stale = {progress.stage, self._stage}
        if self._pending and self._pending[-1].stage in stale:
            self._pending[-1] = progress
        else:
            self._pending.append(progress)
        self._arrived.set()

    async def _run(self) -> None:
        while not self._closed:
            self._arrived.clear()
            due_s = self._due_s()
            if due_s is not None and due_s <= 0:
                step = self._pending.pop(0)
                self._stage, self._told_at = step.stage, self._now()
                await self._tell(step)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(due_s):
                    await self._arrived.wait()

    def _due_s(self) -> float | None:
        """Seconds until the next step may be told; None when there is none."""
        if not self._pending:
            return None
        if self._pending[0].stage is not self._stage:
            return 0.0
        return self._told_at + self._every_s - self._now()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
