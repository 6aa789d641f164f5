"""Brings what an agent logs to its server, so that nobody has to look on each machine."""

import asyncio
from collections import deque
from contextlib import suppress

from bot.domain.api.workers import LogLines
from bot.domain.errors import StoreError
from bot.remote.http import Connection, RefusedError

MOST_WAITING = 1000
"""Lines that are kept while the server is away; the oldest go first."""
MOST_AT_ONCE = 50
LONGEST = 16_000
"""Characters of a line; the rest of a longer one stays in the agent's own log."""


class LogUpload:
    """Takes lines at any time and sends them now and then."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lines: deque[str] = deque()
        self._lost = 0

    def put(self, line: str) -> None:
        """Keep a line until it is sent; never blocks."""
        self._lines.append(line[:LONGEST])
        if len(self._lines) > MOST_WAITING:
            self._lines.popleft()
            self._lost += 1

    async def run(self, stop: asyncio.Event, every_s: float) -> None:
        """Send what there is every so often until `stop` is set, then once more."""
        while not stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await stop.wait()
            with suppress(StoreError):
                await self.flush()

    async def flush(self) -> None:
        """Send what there is; StoreError when the server is away, which loses nothing."""
        while self._lines or self._lost:
            lines = [self._lines.popleft() for _ in range(min(MOST_AT_ONCE, len(self._lines)))]
            try:
                await self._connection.send("log", LogLines(lines=tuple(lines), lost=self._lost))
            except RefusedError:
                self._lost += len(lines)
                return
            except BaseException:
                self._lines.extendleft(reversed(lines))
                raise
            self._lost = 0
