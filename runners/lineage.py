"""Which processes a process has started, and whether they still run, as /proc tells."""

import os
from pathlib import Path


def descendants(pid: int) -> tuple[int, ...]:
    """Every live descendant of a process, parents first; those of other users included."""
    found: list[int] = []
    pending = [pid]
    while pending:
        for child in _children(pending.pop()):
            found.append(child)
            pending.append(child)
    return tuple(child for child in found if alive(child))


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


def living_threads(pid: int) -> list[int]:
    """The threads of a process that have not ended; its first one may have before the others."""
    return [each for each, state in thread_states(pid).items() if state not in "ZX"]


def alive(pid: int) -> bool:
    """Whether a process is more than a zombie."""
    return bool(living_threads(pid))
