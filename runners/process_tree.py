"""Reads from /proc which descendants a process has, whether they run, and their programs."""

import ctypes
import os
import signal
import time
from pathlib import Path

_LIBC = ctypes.CDLL(None)
_TGKILL = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
_CPUCLOCK_SCHED = 2  # in the clock id of another process: its CPU time in ns


def descendants(pid: int) -> tuple[int, ...]:
    """Every live descendant of a process, parents first, including those of other users."""
    return tuple(child for child in listed_beneath(pid) if alive(child))


def listed_beneath(pid: int) -> tuple[int, ...]:
    """Every descendant of a process, parents first, with those that have ended but are not reaped.

    If a process ends meanwhile, its children may be missing.
    """
    found: list[int] = []
    pending = [pid]
    while pending:
        children = _children(pending.pop())
        found += children
        pending += children
    return tuple(found)


def cpu_ns(pid: int) -> int:
    """Return the CPU time of all threads of a process; 0 if it has exited."""
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return 0


def newest_process() -> int:
    """Return the id of the process or thread that began last in this PID namespace or below it."""
    return int(_read("/proc/loadavg").split()[-1])


def image_of(pid: int) -> tuple[bytes, ...]:
    """Return where a process's program and first stack lie; empty if it has exited."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ()
    return tuple(fields[23:26])


def _children(pid: int) -> list[int]:
    """The child processes of all threads of a process.

    It must be fast: it runs several times per call of a kernel, and a candidate on a GPU has about
    twenty threads.
    """
    found: list[int] = []
    try:
        folder = os.open(f"/proc/{pid}/task", os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, ProcessLookupError):
        return found  # the process has ended
    try:
        for thread in os.listdir(folder):  # noqa: PTH208 - names only, and fast
            found += map(int, _read(f"{thread}/children", folder).split())
    except (FileNotFoundError, ProcessLookupError):
        return found
    finally:
        os.close(folder)
    return found


def _read(name: str, folder: int | None = None) -> bytes:
    """Return all of a file, in half of the time that `Path.read_bytes` takes."""
    file = os.open(name, os.O_RDONLY, dir_fd=folder)
    try:
        parts = []
        while part := os.read(file, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(file)


def thread_states(pid: int) -> dict[int, str]:
    """Thread id -> state letter of every thread of a process; {} if it has ended."""
    found: dict[int, str] = {}
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names only, and fast
            found[int(thread)] = _state(f"/proc/{pid}/task/{thread}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return found
    return found


def stop_threads(pid: int) -> None:
    """Send a stop signal to each thread of a process.

    One to the process takes effect only when the thread that received it is scheduled, and a busy
    thread continues for milliseconds.
    """
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names only, and fast
            _LIBC.syscall(_TGKILL, pid, int(thread), int(signal.SIGSTOP))
    except FileNotFoundError:
        return


def _state(path: str) -> str:
    try:
        stat = _read(path)  # the name in it may be any bytes
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    return stat.rsplit(b")", 1)[1].split()[0].decode()


def living_threads(pid: int) -> list[int]:
    """Ids of the threads that have not ended; the main thread may end before the others."""
    return [thread for thread, state in thread_states(pid).items() if state not in "ZX"]


def alive(pid: int) -> bool:
    """Whether a process has a thread that has not ended; a zombie has none."""
    return bool(living_threads(pid))
