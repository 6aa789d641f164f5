"""A process and its descendants: measures their memory and kills them."""

import math
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from runners.process_tree import alive, descendants, living_threads

KILL_S = 10.0
"""How long killed processes may take to end; with a GPU it can be seconds."""
_ROUND_S = 1e-3
_HELD = {"RssAnon:", "RssShmem:"}
_SHARED_OUT = {"Pss_Anon:", "Pss_Shmem:"}


def memory_of_tree(pid: int, within_s: float = math.inf) -> int:
    """Bytes of memory that the process and its descendants hold, without file mappings.

    A single process is read from `status`, which takes microseconds. Several share pages since
    their fork, so each one's proportional share is read. With many busy processes that can take
    seconds; after `within_s` no further ones are counted.
    """
    end = time.monotonic() + within_s
    tree = (pid, *descendants(pid))
    held = held_by if len(tree) == 1 else _share_of
    total = 0
    for each in tree:
        total += sum(map(held, living_threads(each)[:1]))
        if time.monotonic() > end:
            break
    return total


def holds_more(pid: int, most: int, within_s: float = math.inf) -> bool:
    """Whether the process and its descendants hold more than `most` bytes, without file mappings.

    First counts shared pages once per process. Only if that is too much, it counts them exactly,
    like `memory_of_tree`: for that Linux walks all their pages and blocks processes that map
    memory, which is too expensive many times a second.
    """
    end = time.monotonic() + within_s
    total = 0
    for each in (pid, *descendants(pid)):
        total += sum(map(held_by, living_threads(each)[:1]))
        if total > most:
            return memory_of_tree(pid, end - time.monotonic()) > most
        if time.monotonic() > end:
            break
    return False


def held_by(thread: int) -> int:
    """Bytes of memory that one process holds, including shared pages."""
    return _sum_kib(f"/proc/{thread}/status", _HELD)


def _share_of(thread: int) -> int:
    """Its proportional share; all its memory if the process cannot be inspected."""
    try:
        return _sum_kib(f"/proc/{thread}/smaps_rollup", _SHARED_OUT)
    except PermissionError:
        return held_by(thread)


def _sum_kib(path: str, fields: set[str]) -> int:
    try:
        lines = Path(path).read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has ended, or its memory is freed
    words = (line.split() for line in lines)
    return sum(int(each[1]) for each in words if each and each[0] in fields) << 10


def kill_tree(pid: int, within_s: float = KILL_S) -> bool:
    """Kill a process and its descendants; returns whether none runs any more.

    Killing PID 1 of a PID namespace kills the whole namespace. The caller reaps its own children.
    """
    return _hunt(lambda: (pid, *descendants(pid)), within_s)


def kill_beneath(pid: int, within_s: float = KILL_S) -> bool:
    """Kill the descendants of a process, not itself; returns whether none runs any more.

    If the process adopts orphans, no descendant escapes when its own parent exits.
    """
    return _hunt(lambda: descendants(pid), within_s)


def kill_others(pid: int, spared: Iterable[int], within_s: float = KILL_S) -> bool:
    """Like `kill_beneath`, without the `spared` processes, which were started earlier."""
    kept = frozenset(spared)
    return _hunt(lambda: tuple(each for each in descendants(pid) if each not in kept), within_s)


def _hunt(listed: Callable[[], tuple[int, ...]], within_s: float) -> bool:
    """Kill listed processes until the list is empty and all that were ever listed have ended.

    All are stopped before any is killed. Otherwise one could fork while the others are listed, and
    its children would escape.
    """
    end = time.monotonic() + within_s
    hunted: set[int] = set()
    while time.monotonic() < end:
        found = {each for each in listed() if alive(each)} - hunted
        hunted = found | {each for each in hunted if alive(each)}
        if found:
            _send(found, signal.SIGSTOP)
        elif hunted:
            _send(hunted, signal.SIGKILL)
            select.select([], [], [], _ROUND_S)
        else:
            return True
    return False


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
