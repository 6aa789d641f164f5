"""Hands each notice to those who wait for its topic, and a tick each second to everyone."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field

from bot.domain.job import Notice, Topic

TICK_S = 1.0
"""How often a subscriber is told to look by itself: its own notice may be the one that was lost."""
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
        """Yields notices, and None at least about every second."""
        queue: asyncio.Queue[Notice] = asyncio.Queue(BACKLOG)
        self._queues[queue] = topics
        try:
            async with aclosing(_ticking(queue)) as notices:
                yield notices
        finally:
            del self._queues[queue]


async def _ticking(queue: asyncio.Queue[Notice]) -> AsyncGenerator[Notice | None, None]:
    """Ticks also between the notices of a busy queue, which would else put off the looking."""
    loop = asyncio.get_running_loop()
    due = loop.time() + TICK_S
    while True:
        notice = None
        with suppress(TimeoutError):
            if loop.time() < due:
                async with asyncio.timeout_at(due):
                    notice = await queue.get()
        yield notice
        if notice is None:
            due = loop.time() + TICK_S
