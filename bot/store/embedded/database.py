"""The database of a data folder: started and watched by one process, joined by others."""

import asyncio
import math
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from bot.domain.errors import SetupError
from bot.store.embedded.binaries import server_account, usable_by
from bot.store.embedded.folder import Folder, open_folder
from bot.store.embedded.server import Cluster, ServerSupervisor, socket_folder, stop
from bot.store.errors import DRIVER_FAILURES, writing

JOIN_LIMIT_S = 30.0
JOIN_POLL_S = 0.1
GUESTS_POLL_S = 0.1
BRIEF_WAIT_S = 2.0
SILENT_WAIT_S = 1.0
"""A wait for other processes that is shorter than this is not reported."""


@dataclass(frozen=True, slots=True)
class EmbeddedDatabase:
    """A running database; `owner` tells whether this process started it and stops it."""

    dsn: str = field(repr=False)
    owner: bool


@asynccontextmanager
async def open_database(
    data_dir: Path,
    *,
    exclusive: bool = False,
    prepare: Callable[[str], Awaitable[object]] | None = None,
    waiting: Callable[[], None] | None = None,
) -> AsyncIterator[EmbeddedDatabase]:
    """Yield the database of `data_dir`: started here, or joined when another process owns it.

    An owner restarts a server that dies. It runs `prepare` before others can join, and stops the
    server when the last joined process has left; `waiting` is called when that takes long.
    `exclusive` refuses to join, and lets others use the server only briefly at the end, to read a
    last result.
    """
    folder = open_folder(data_dir)
    for _ in range(int(JOIN_LIMIT_S / JOIN_POLL_S)):
        with folder.owned() as owned:
            if owned:
                guests = _Guests(folder, waiting, BRIEF_WAIT_S if exclusive else math.inf)
                async with _served_to(guests, _served(folder, prepare)) as dsn:
                    yield EmbeddedDatabase(dsn, owner=True)
                return
        if exclusive:
            raise _in_use(folder, data_dir)
        with folder.visited() as admitted:
            address = folder.address() if admitted else None
            if address is not None and await _answers(address):
                yield EmbeddedDatabase(address, owner=False)
                return
        await asyncio.sleep(JOIN_POLL_S)
    raise SetupError(f"Podium {folder.owner()} owns {data_dir} but its database does not answer")


@dataclass(frozen=True, slots=True)
class _Guests:
    """The processes that joined the server of a folder."""

    folder: Folder
    waiting: Callable[[], None] | None
    patience_s: float

    @asynccontextmanager
    async def gone(self) -> AsyncIterator[None]:
        """Wait, with a limit, until no process uses the server, and then let none in."""
        looks = 0
        while True:
            with self.folder.closed() as closed:
                if closed:
                    yield
                    return
            if looks * GUESTS_POLL_S >= self.patience_s:
                yield
                return
            looks += 1
            if self.waiting is not None and looks == int(SILENT_WAIT_S / GUESTS_POLL_S):
                self.waiting()
            await asyncio.sleep(GUESTS_POLL_S)


@asynccontextmanager
async def _served_to(
    guests: _Guests, server: AbstractAsyncContextManager[str]
) -> AsyncIterator[str]:
    """Yield the server, which runs as long as its owner or a joined process needs it."""
    async with AsyncExitStack() as shut, server as dsn:
        interrupted = False
        try:
            yield dsn
        except asyncio.CancelledError:
            interrupted = True
            raise
        finally:
            if not interrupted:
                await shut.enter_async_context(guests.gone())


def _in_use(folder: Folder, data_dir: Path) -> SetupError:
    return SetupError(
        f"data folder in use by Podium pid {folder.owner()}; stop that one, or choose another "
        f"folder than {data_dir}"
    )


async def _answers(dsn: str) -> bool:
    try:
        connection = await asyncpg.connect(dsn, timeout=2)
        await connection.close(timeout=2)
    except DRIVER_FAILURES:
        return False
    return True


@asynccontextmanager
async def _served(
    folder: Folder, prepare: Callable[[str], Awaitable[object]] | None
) -> AsyncIterator[str]:
    """Start the folder's server, restart it when it dies, and stop it at the end."""
    with writing(folder.path):
        cluster = _cluster(folder)
    try:
        await cluster.create()
        keeper = ServerSupervisor(cluster, await cluster.start())
        watch = asyncio.create_task(keeper.watch())
        try:
            if prepare is not None:
                await prepare(cluster.dsn)
            folder.publish_address(cluster.dsn)
            yield cluster.dsn
        finally:
            folder.withdraw_address()
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
            await stop(keeper.process)
    finally:
        if cluster.sockets.parent != cluster.home:
            shutil.rmtree(cluster.sockets, ignore_errors=True)


def _cluster(folder: Folder) -> Cluster:
    account = server_account()
    home = folder.home(account)
    return Cluster(
        home=home,
        programs=usable_by(account, home),
        account=account,
        password=folder.password(),
        sockets=socket_folder(home, account),
        log=folder.path / "postgres.log",
    )
