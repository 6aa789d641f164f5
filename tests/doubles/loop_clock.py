"""The running loop's clock, which a test moves forward: a deadline by it is reached at once."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


class LoopClock:
    """How far the loop is ahead of the wall."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    async def move(self, seconds: float) -> None:
        """Go on by so much, and let everybody do what is due then."""
        self.ahead_s += seconds
        for _ in range(4):
            await asyncio.sleep(0)


@contextmanager
def moved() -> Iterator[LoopClock]:
    """The clock of the running loop, for as long as the caller stays."""
    clock, loop = LoopClock(), asyncio.get_running_loop()
    usual = loop.time
    with patch.object(loop, "time", lambda: usual() + clock.ahead_s):
        yield clock
