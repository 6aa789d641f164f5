"""Requests and GPUs are counted from what is stored."""

import asyncio

from bot.domain.job import JobState
from bot.services.evaluation_server.accept import accept
from bot.services.evaluation_server.follow import wait
from bot.services.evaluation_server.statistics import newest, slots, tallies
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import until
from tests.doubles.eval_server import eval_server, make_request
from tests.doubles.memory_store import MemoryStore


async def test_nothing_is_counted_before_anything_was_asked(memory_store: MemoryStore) -> None:
    assert await tallies(memory_store) == {}
    assert await newest(memory_store) == ()
    assert (await slots(memory_store)).gpus == 0


async def test_requests_are_counted_with_the_gpus_that_they_have(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    async with eval_server(memory_store, clock, {"H100": 2, "CPU": 1}):
        done = await accept(memory_store, clock, ada.id, make_request("verdict=wrong_answer"))
        await wait(memory_store, done.id, asyncio.get_running_loop().time() + 10, lambda: False)
        await accept(memory_store, clock, ada.id, make_request("seconds=99"))

        async def is_running() -> bool:
            return JobState.RUNNING in await tallies(memory_store)

        await until(is_running)
        found = await slots(memory_store)
        assert (found.gpus, found.offered["CPU"]) == (2, 1)
        assert found.free == {"H100": 1, "CPU": 1}
        counted = await tallies(memory_store)
        runs = await newest(memory_store)
    assert {state: each.requests for state, each in counted.items()} == {
        JobState.SUCCEEDED: 1,
        JobState.RUNNING: 1,
    }
    assert [run.verdict for run in runs] == [None, Verdict.WRONG_ANSWER]
