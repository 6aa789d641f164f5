"""The event loop's clock, which a test can move forward to reach deadlines at once."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


class LoopClock:
    """How far the loop's clock is ahead of real time."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    async def move(self, seconds: float) -> None:
        """Move the clock forward and let the loop run what is due."""
        self.ahead_s += seconds
        for _ in range(4):
            await asyncio.sleep(0)


@contextmanager
def moved() -> Iterator[LoopClock]:
    """The clock of the running loop, inside the block."""
    clock, loop = LoopClock(), asyncio.get_running_loop()
    usual = loop.time
    with patch.object(loop, "time", lambda: usual() + clock.ahead_s):
        yield clock
