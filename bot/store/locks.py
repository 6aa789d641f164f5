"""The locks of a data folder: who serves it and whose turn it is; a dead holder's is freed."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.domain.errors import SetupError


@contextmanager
def serving(data_dir: Path, *, take: bool) -> Iterator[bool]:
    """Whether nobody else serves this data folder; `take` keeps it for this process."""
    with opened_lock(data_dir, "up.lock") as lock:
        free = taken(lock)
        if take and not free:
            raise SetupError(_in_use(lock, data_dir))
        if take:
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
        elif free:
            fcntl.flock(lock, fcntl.LOCK_UN)
        yield free


@contextmanager
def opened_lock(data_dir: Path, name: str) -> Iterator[int]:
    """The descriptor of a lock that nobody has taken by opening it."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = os.open(data_dir / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SetupError(
            f"cannot write to {data_dir}: {error.strerror}; choose another folder with --data"
        ) from error
    try:
        yield lock
    finally:
        os.close(lock)


def taken(lock: int) -> bool:
    """Whether the lock is this process's from now on."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _in_use(lock: int, data_dir: Path) -> str:
    pid = os.pread(lock, 20, 0).decode("ascii", "replace").strip() or "of an unknown number"
    return (
        f"data folder in use by Podium pid {pid}; stop that one, or choose another folder than "
        f"{data_dir} with --data"
    )
