"""What runs beneath a process, and its end."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_POLL_S = 0.005


def descendants(pid: int) -> list[int]:
    """The descendants of a process, parents first; those of another user included."""
    found: list[int] = []
    pending = [pid]
    while pending:
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended while we looked
            for thread in Path(f"/proc/{pending.pop()}/task").iterdir():
                children = [int(child) for child in (thread / "children").read_text().split()]
                found += children
                pending += children
    return found


def running(pid: int) -> bool:
    """Whether a process exists and is more than a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def kill(pids: Sequence[int]) -> None:
    """Send SIGKILL to each that is still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def gone(pids: Sequence[int], timeout_s: float) -> bool:
    """Wait until none of them runs; False when some still do after the time."""
    end = asyncio.get_running_loop().time() + timeout_s
    while any(running(pid) for pid in pids):
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(_POLL_S)
    return True
