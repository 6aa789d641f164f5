"""Hands each notice to those who wait for its topic, and a tick to those who wait long."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from bot.ports import Notice, Topic

TICK_S = 1.0
"""How long a subscriber waits for a notice before it is told to look by itself."""
BACKLOG = 1000
"""Notices kept for a slow subscriber; more are dropped, since they are hints only."""


@dataclass(slots=True)
class Subscriptions:
    """Who waits for what, within one process."""

    _queues: dict[asyncio.Queue[Notice], frozenset[Topic]] = field(default_factory=dict)

    def publish(self, notice: Notice) -> None:
        """Tell everyone who subscribed to the notice's topic."""
        for queue, topics in self._queues.items():
            if notice.topic in topics and not queue.full():
                queue.put_nowait(notice)

    @asynccontextmanager
    async def subscribe(
        self, topics: frozenset[Topic]
    ) -> AsyncIterator[AsyncIterator[Notice | None]]:
        """Yields a notice, or None about every second when there was none."""
        queue: asyncio.Queue[Notice] = asyncio.Queue(BACKLOG)
        self._queues[queue] = topics
        try:
            async with aclosing(_ticking(queue)) as notices:
                yield notices
        finally:
            del self._queues[queue]


async def _ticking(queue: asyncio.Queue[Notice]) -> AsyncGenerator[Notice | None, None]:
    while True:
        try:
            async with asyncio.timeout(TICK_S):
                notice = await queue.get()
        except TimeoutError:
            yield None
        else:
            yield notice
