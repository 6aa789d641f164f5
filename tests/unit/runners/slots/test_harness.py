import asyncio
from asyncio.subprocess import Process
from types import SimpleNamespace
from typing import cast

import pytest

from runners.slots.harness import Harness

HEALTHY = b'{"health": {}}\n'


@pytest.mark.parametrize("steps", range(6))
async def test_who_is_cancelled_when_the_line_arrives_stays_cancelled(steps: int) -> None:
    lines, errors = asyncio.StreamReader(), asyncio.StreamReader()
    streams = SimpleNamespace(stdin=object(), stdout=lines, stderr=errors, pid=1)
    harness = Harness(cast("Process", streams))
    errors.feed_eof()
    waiting = asyncio.create_task(harness.wait_ready())
    for _ in range(3):
        await asyncio.sleep(0)  # until it waits

    lines.feed_data(HEALTHY)
    for _ in range(steps):
        await asyncio.sleep(0)
    if waiting.cancel():
        with pytest.raises(asyncio.CancelledError):
            await waiting
    else:
        await waiting
