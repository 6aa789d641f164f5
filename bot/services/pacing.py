"""Splits long work into small steps, so that other tasks of the event loop can run."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

STEP_S = 0.001
"""A request needs about ten turns of the event loop; each may wait for one such step."""

Thing = TypeVar("Thing")


async def yielding(things: Iterable[Thing], step_s: float = STEP_S) -> AsyncIterator[Thing]:
    """Yield the same items, and let other tasks run after every `step_s` seconds."""
    now = asyncio.get_running_loop().time
    ends = now() + step_s
    for each in things:
        yield each
        if now() >= ends:
            await asyncio.sleep(0)
            ends = now() + step_s
