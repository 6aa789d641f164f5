"""A process with everything that it started: who they are, what they hold, and their end."""

import os
import select
import signal
from pathlib import Path

_KILL_ROUNDS = 100
_ROUND_MS = 5
_HELD = {"RssAnon:", "RssShmem:"}
_SHARED_OUT = {"Pss_Anon:", "Pss_Shmem:"}


def descendants(pid: int) -> tuple[int, ...]:
    """Every live descendant of a process, parents first."""
    found: list[int] = []
    pending = [pid]
    while pending:
        for child in _children(pending.pop()):
            found.append(child)
            pending.append(child)
    return tuple(child for child in found if _alive(child))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return found  # it ended while we looked
    return found


def thread_states(pid: int) -> dict[int, str]:
    """The state letter of every thread of a process; nothing when it is gone."""
    found: dict[int, str] = {}
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names only, and fast
            found[int(thread)] = _state(f"/proc/{pid}/task/{thread}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return found
    return found


def _state(path: str) -> str:
    try:
        stat = Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    return stat.rsplit(")", 1)[1].split()[0]


def _living(pid: int) -> list[int]:
    # The first thread may have ended while others run on: then `/proc/PID/stat` says zombie.
    return [each for each, state in thread_states(pid).items() if state not in "ZX"]


def _alive(pid: int) -> bool:
    return bool(_living(pid))


def memory_of_tree(pid: int) -> int:
    """Bytes of memory that the process and its descendants hold, files aside.

    One process alone is read from `status`, which costs microseconds; several share pages since
    they were forked, so that each one's share is asked for.
    """
    tree = (pid, *descendants(pid))
    living = [thread for each in tree for thread in _living(each)[:1]]
    if len(tree) == 1:
        return sum(_sum_kib(f"/proc/{each}/status", _HELD) for each in living)
    return sum(_sum_kib(f"/proc/{each}/smaps_rollup", _SHARED_OUT) for each in living)


def _sum_kib(path: str, fields: set[str]) -> int:
    try:
        lines = Path(path).read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0  # it ended, or its memory is already gone
    words = (line.split() for line in lines)
    return sum(int(each[1]) for each in words if each and each[0] in fields) << 10


def kill_tree(pid: int) -> None:
    """Kill a process and its descendants, and wait up to half a second until none runs.

    A descendant that forks while it is hunted is found in the next round; PID 1 of a PID
    namespace takes its namespace along at once. The caller reaps what are its own children.
    """
    hunted: set[int] = set()
    for _ in range(_KILL_ROUNDS):
        hunted |= set(descendants(pid)) | {pid}
        running = [each for each in hunted if _alive(each)]
        if not running:
            return
        for each in running:
            _send(each, signal.SIGSTOP)  # so that it cannot fork while its children are listed
        for each in (*descendants(pid), *running):
            _send(each, signal.SIGKILL)
        select.select([], [], [], _ROUND_MS / 1000)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
