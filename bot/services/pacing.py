"""Long work in small steps, between which everybody else in the process has a turn."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

STEP_S = 0.001
"""An answer takes some ten turns, and each of them may wait for one such step."""

Thing = TypeVar("Thing")


async def yielding(things: Iterable[Thing], step_s: float = STEP_S) -> AsyncIterator[Thing]:
    """The same things, with a turn for the others whenever a step has taken so many seconds."""
    now = asyncio.get_running_loop().time
    ends = now() + step_s
    for each in things:
        yield each
        if now() >= ends:
            await asyncio.sleep(0)
            ends = now() + step_s
