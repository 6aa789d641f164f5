import asyncio
import time

from bot.web.routes.api.boards import yielding


async def test_all_things_come_in_their_order() -> None:
    assert [each async for each in yielding(range(1000))] == list(range(1000))


async def test_others_have_a_turn_during_long_work_and_none_is_wasted_on_short_work() -> None:
    turns: list[float] = []

    async def other() -> None:
        while True:
            turns.append(time.perf_counter())
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    try:
        async for _ in yielding(range(20), step_s=60):
            pass
        assert turns == []
        async for _ in yielding(range(20), step_s=0.002):
            time.sleep(0.001)  # noqa: ASYNC251 - work that computes
    finally:
        task.cancel()
    assert len(turns) >= 5
