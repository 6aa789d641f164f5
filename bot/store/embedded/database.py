"""The database of a data folder: started and watched by one process, joined by others.

Its files are in the folder `postgres`, whose locks show which process owns the server and which
processes use it.
"""

import asyncio
import contextlib
import fcntl
import json
import math
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from bot.domain.errors import SetupError
from bot.store.embedded.programs import Account, programs_for, server_account
from bot.store.embedded.server import Cluster, ServerSupervisor, socket_folder, stop
from bot.store.errors import DRIVER_FAILURES, writing
from bot.store.locks import acquire_now, open_lock, try_flock

SHARED_HOMES = Path("/var/lib/podium")
"""Where the server's files are when its account cannot enter the data folder."""
JOINED_LOCK = "guests.lock"
"""Held, shared, by each process that joined the server."""
JOIN_LIMIT_S = 30.0
JOIN_POLL_S = 0.1
LEAVE_POLL_S = 0.1
BRIEF_WAIT_S = 2.0
"""How long an exclusive owner lets others read a last result before it stops the server."""
SILENT_WAIT_S = 1.0
"""A wait for other processes that is shorter than this is not reported."""


@dataclass(frozen=True, slots=True)
class EmbeddedDatabase:
    """A running database; `owner`: this process started it and stops it."""

    dsn: str = field(repr=False)
    owner: bool


@contextlib.asynccontextmanager
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
                joined = _JoinedProcesses(folder, waiting, BRIEF_WAIT_S if exclusive else math.inf)
                async with _serve_joined(joined, _running_server(folder, prepare)) as dsn:
                    yield EmbeddedDatabase(dsn, owner=True)
                return
        if exclusive:
            raise _in_use(folder, data_dir)
        with folder.join() as may_join:
            address = folder.address() if may_join else None
            if address is not None and await _answers(address):
                yield EmbeddedDatabase(address, owner=False)
                return
        await asyncio.sleep(JOIN_POLL_S)
    words = f"the database of {data_dir} does not answer; Podium pid {folder.owner()} owns it"
    raise SetupError(f"{words}; wait for it, or stop that process")


@dataclass(frozen=True, slots=True)
class Folder:
    """The database's part of a data folder."""

    path: Path

    @property
    def _lock(self) -> Path:
        return self.path / "owner.lock"

    @property
    def _address(self) -> Path:
        return self.path / "address.json"

    @contextlib.contextmanager
    def owned(self) -> Iterator[bool]:
        """Yield whether this process owns the folder; the kernel releases a dead owner's lock."""
        with open_lock(self.path, self._lock.name) as lock:
            yield acquire_now(lock, self.path)

    @contextlib.contextmanager
    def join(self) -> Iterator[bool]:
        """Yield whether this process may use the owner's server, which then keeps running."""
        with open_lock(self.path, JOINED_LOCK) as lock:
            yield try_flock(lock, fcntl.LOCK_SH)

    @contextlib.contextmanager
    def close_to_others(self) -> Iterator[bool]:
        """Yield True if no process uses the owner's server; then none can join during the block."""
        with open_lock(self.path, JOINED_LOCK) as lock:
            yield try_flock(lock, fcntl.LOCK_EX)

    def owner(self) -> str:
        """Return the owner's process id, as text."""
        return self._lock.read_text().strip() or "(unknown)"

    def address(self) -> str | None:
        """Return the running server's URL, as written by its owner."""
        try:
            return str(json.loads(self._address.read_text())["dsn"])
        except (OSError, ValueError, KeyError):
            return None

    def publish_address(self, dsn: str) -> None:
        """Publish the server's URL to this user's other processes."""
        self._write(self._address, json.dumps({"dsn": dsn}))

    def withdraw_address(self) -> None:
        """Remove the address."""
        self._address.unlink(missing_ok=True)

    def password(self) -> str:
        """Return the server's password, created on the first call."""
        return self._stored("password", lambda: secrets.token_urlsafe(24))

    def home(self, account: Account) -> Path:
        """Return where the server's own files are: here, or in a place that its account may enter.

        The first choice is stored: a changed permission must never hide the data.
        """
        elsewhere = (self.path / "location").exists()
        if not elsewhere and account.can_enter(self.path):
            return self.path
        if not elsewhere and (self.path / "data").exists():
            raise SetupError(
                f"the account of the database can no longer enter {self.path}; "
                "let others pass its parent folders again (chmod o+x), or move it"
            )
        home = Path(self._stored("location", lambda: str(SHARED_HOMES / secrets.token_hex(8))))
        with writing(home):
            SHARED_HOMES.mkdir(mode=0o711, parents=True, exist_ok=True)
            home.mkdir(mode=0o711, exist_ok=True)
        return home

    def _stored(self, name: str, make: Callable[[], str]) -> str:
        file = self.path / name
        if not file.exists():
            self._write(file, make())
        return file.read_text().strip()

    def _write(self, file: Path, text: str) -> None:
        """Write a file for this user only, completely or not at all."""
        partial = file.with_name(file.name + ".partial")
        with writing(self.path):
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as stream:
                stream.write(text + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            partial.rename(file)


def open_folder(data_dir: Path) -> Folder:
    """Return the folder for the database, created if missing."""
    path = data_dir.expanduser().resolve() / "postgres"
    with writing(path):
        path.mkdir(mode=0o711, parents=True, exist_ok=True)
    return Folder(path)


@dataclass(frozen=True, slots=True)
class _JoinedProcesses:
    """The processes that joined the server of a folder."""

    folder: Folder
    waiting: Callable[[], None] | None
    limit_s: float

    @contextlib.asynccontextmanager
    async def wait_until_left(self) -> AsyncIterator[None]:
        """Wait until no process uses the server, or `limit_s`; then no process may join."""
        polls = 0
        while True:
            with self.folder.close_to_others() as is_closed:
                if is_closed:
                    yield
                    return
            if polls * LEAVE_POLL_S >= self.limit_s:
                yield
                return
            polls += 1
            if self.waiting is not None and polls == int(SILENT_WAIT_S / LEAVE_POLL_S):
                self.waiting()
            await asyncio.sleep(LEAVE_POLL_S)


@contextlib.asynccontextmanager
async def _serve_joined(
    joined: _JoinedProcesses, server: contextlib.AbstractAsyncContextManager[str]
) -> AsyncIterator[str]:
    """Yield the server, which runs as long as its owner or a joined process needs it."""
    async with contextlib.AsyncExitStack() as stack, server as dsn:
        interrupted = False
        try:
            yield dsn
        except asyncio.CancelledError:
            interrupted = True
            raise
        finally:
            if not interrupted:
                await stack.enter_async_context(joined.wait_until_left())


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


@contextlib.asynccontextmanager
async def _running_server(
    folder: Folder, prepare: Callable[[str], Awaitable[object]] | None
) -> AsyncIterator[str]:
    """Start the folder's server, restart it when it dies, and stop it at the end."""
    with writing(folder.path):
        cluster = _cluster(folder)
    try:
        await cluster.create()
        supervisor = ServerSupervisor(cluster, await cluster.start())
        watch = asyncio.create_task(supervisor.watch())
        try:
            if prepare is not None:
                await prepare(cluster.dsn)
            folder.publish_address(cluster.dsn)
            yield cluster.dsn
        finally:
            folder.withdraw_address()
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
            await stop(supervisor.process)
    finally:
        if cluster.sockets.parent != cluster.home:
            shutil.rmtree(cluster.sockets, ignore_errors=True)


def _cluster(folder: Folder) -> Cluster:
    account = server_account()
    home = folder.home(account)
    return Cluster(
        home=home,
        programs=programs_for(account, home),
        account=account,
        password=folder.password(),
        sockets=socket_folder(home, account),
        log=folder.path / "postgres.log",
    )
