"""File locks that show which processes serve a data folder, judge in it, and are ready.

The kernel releases them when their process ends.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from bot.domain.errors import SetupError
from bot.store.errors import writing

_SERVING = "up.lock"
_JUDGING = "judge.lock"
_READY = "ready.lock"
_ATTEMPTS = 10
_POLL_S = 0.02


def is_served(data_dir: Path) -> bool:
    """Return whether a process serves this data folder now."""
    return _is_held(data_dir, _SERVING)


def is_ready(data_dir: Path) -> bool:
    """Return whether that process is ready, with every front end connected."""
    return _is_held(data_dir, _READY)


def _is_held(data_dir: Path, name: str) -> bool:
    with open_lock(data_dir, name) as lock:
        # A shared lock: two processes that check at once do not take each other for the holder.
        return not try_flock(lock, fcntl.LOCK_SH)


@asynccontextmanager
async def serving(data_dir: Path) -> AsyncIterator[None]:
    """Hold the data folder for this process; SetupError names the process that has it."""
    with open_lock(data_dir, _SERVING) as lock:
        if not await _acquire(lock, data_dir):
            raise SetupError(
                f"data folder in use by Podium pid {_holder(lock)}; stop that one, or choose "
                f"another folder than {data_dir} with --data"
            )
        yield


@asynccontextmanager
async def judging(data_dir: Path) -> AsyncIterator[None]:
    """Hold the judge's lock for this process; SetupError names the process that has it."""
    with open_lock(data_dir, _JUDGING) as lock:
        if not await _acquire(lock, data_dir):
            raise SetupError(
                f"Podium pid {_holder(lock)} judges for {data_dir} on this machine already, and "
                "two at once would disturb each other's times; stop that one first"
            )
        yield


@asynccontextmanager
async def ready(data_dir: Path) -> AsyncIterator[None]:
    """Show other processes that this one is ready; only the process that judges here may do so."""
    with open_lock(data_dir, _READY) as lock:
        if not await _acquire(lock, data_dir):
            raise SetupError(
                f"Podium pid {_holder(lock)} is at work in {data_dir} already; stop that one first"
            )
        yield


@asynccontextmanager
async def judging_in_turn(data_dir: Path, stop: asyncio.Event) -> AsyncIterator[bool]:
    """Yield whether the judge's lock was acquired before `stop` was set; hold it meanwhile."""
    with open_lock(data_dir, _JUDGING) as lock:
        while not stop.is_set():
            if await _acquire(lock, data_dir):
                yield True
                return
        yield False


@contextmanager
def open_lock(folder: Path, name: str) -> Iterator[int]:
    """Yield the descriptor of a lock; opening it does not take the lock."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield lock
    finally:
        os.close(lock)


async def _acquire(lock: int, data_dir: Path) -> bool:
    """Return whether this process has the lock now; wait for processes that only check it."""
    for _ in range(_ATTEMPTS):
        if acquire_now(lock, data_dir):
            return True
        await asyncio.sleep(_POLL_S)
    return False


def acquire_now(lock: int, folder: Path) -> bool:
    """Return whether this process has the lock now; its id is then in the lock's file."""
    if not try_flock(lock, fcntl.LOCK_EX):
        return False
    with writing(folder):
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
    return True


def try_flock(lock: int, kind: int) -> bool:
    """Return whether the lock could be taken without waiting, shared or exclusively."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(lock: int) -> str:
    """Return the id of the process that has the lock, as text."""
    return os.pread(lock, 20, 0).decode("ascii", "replace").strip() or "(unknown)"
