"""The end of processes."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress

from runners.lineage import alive

_POLL_S = 0.005


def kill(pids: Sequence[int]) -> None:
    """Send SIGKILL to each that is still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def gone(pids: Sequence[int], timeout_s: float) -> bool:
    """Wait until none of them runs; False when some still do after the time."""
    end = asyncio.get_running_loop().time() + timeout_s
    while any(alive(pid) for pid in pids):
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(_POLL_S)
    return True
