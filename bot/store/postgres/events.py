"""Notices of changes, from Postgres to subscribers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field

import asyncpg
import structlog

from bot.domain.job import Notice, Topic
from bot.store.errors import DRIVER_FAILURES, first_line, reaching

TICK_S = 1.0
"""How often a subscriber gets None and polls, because a notice may be lost."""
BACKLOG = 1000
"""Notices kept for a slow subscriber; more are dropped, because they are only hints."""


@dataclass(slots=True)
class Subscriptions:
    """The subscribers of each topic, within one process."""

    _queues: dict[asyncio.Queue[Notice], frozenset[Topic]] = field(default_factory=dict)

    def publish(self, notice: Notice) -> None:
        """Send a notice to every subscriber of its topic."""
        for queue, topics in self._queues.items():
            if notice.topic in topics and not queue.full():
                queue.put_nowait(notice)

    @asynccontextmanager
    async def subscribe(
        self, topics: frozenset[Topic]
    ) -> AsyncIterator[AsyncIterator[Notice | None]]:
        """Yield notices, and None at least about every second."""
        queue: asyncio.Queue[Notice] = asyncio.Queue(BACKLOG)
        self._queues[queue] = topics
        try:
            async with aclosing(_ticking(queue)) as notices:
                yield notices
        finally:
            del self._queues[queue]


async def _ticking(queue: asyncio.Queue[Notice]) -> AsyncGenerator[Notice | None, None]:
    """Yield None each second, even between many notices, which would otherwise delay polling."""
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


CHANNELS = {f"podium_{topic.value}": topic for topic in Topic}
CONNECT_S = 10.0
RETRY_S = 0.5
PROBE_S = 15.0
"""How often a silent connection is checked."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def listening(dsn: str) -> AsyncIterator[Subscriptions]:
    """Yield subscriptions that receive the database's notifications."""
    subscriptions = Subscriptions()
    with reaching(dsn):
        connection = await _connect(dsn, subscriptions)
    task = asyncio.create_task(_keep_listening(dsn, connection, subscriptions))
    try:
        yield subscriptions
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _connect(dsn: str, subscriptions: Subscriptions) -> "asyncpg.Connection[asyncpg.Record]":
    connection = await asyncpg.connect(dsn, timeout=CONNECT_S, command_timeout=CONNECT_S)

    def publish(_: object, __: int, channel: str, payload: object) -> None:
        subscriptions.publish(Notice(CHANNELS[channel], str(payload)))

    try:
        for channel in CHANNELS:
            await connection.add_listener(channel, publish)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _keep_listening(
    dsn: str, connection: "asyncpg.Connection[asyncpg.Record]", subscriptions: Subscriptions
) -> None:
    while True:
        await _wait_until_lost(connection)
        log.warning("no notices until the database is back", action="listen_lost")
        connection = await _reconnected(dsn, subscriptions)
        log.info("notices arrive again", action="listen_back")


async def _wait_until_lost(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Wait until the connection is lost; always close it."""
    lost = asyncio.Event()
    connection.add_termination_listener(lambda _: lost.set())
    try:
        while not (lost.is_set() or connection.is_closed()):
            with suppress(TimeoutError):
                async with asyncio.timeout(PROBE_S):
                    await lost.wait()
                    return
            await connection.execute("select 1")
    except DRIVER_FAILURES:
        return
    finally:
        connection.terminate()


async def _reconnected(
    dsn: str, subscriptions: Subscriptions
) -> "asyncpg.Connection[asyncpg.Record]":
    while True:
        try:
            return await _connect(dsn, subscriptions)
        except DRIVER_FAILURES as error:
            log.debug("still no notices", action="listen_retry", error=first_line(error))
            await asyncio.sleep(RETRY_S)
