"""Tests of how long a worker waits for what, and of what it tells of itself meanwhile."""

import asyncio

from typing_extensions import override

from bot.domain.job import JobState, Worker
from bot.services.dispatch.config import DispatchConfig
from runners.backends import fake
from runners.contract.runner import Capabilities
from runners.slots.harness import START_S
from tests.doubles.dispatching import dispatching, until
from tests.doubles.factories import make_capabilities
from tests.doubles.place import Place


class ColdRunner(fake.FakeRunner):
    """A runner that takes a while to say what it offers, and begins anew when it is cut short."""

    def __init__(self) -> None:
        super().__init__("cold", make_capabilities())
        self.asked = 0

    @override
    async def capabilities(self) -> Capabilities:
        self.asked += 1
        await asyncio.sleep(0.2)
        return await super().capabilities()


def test_a_harness_may_start_before_the_question_to_it_is_given_up() -> None:
    assert DispatchConfig().offer_s > START_S


async def test_a_cold_runner_is_given_the_time_it_takes(place: Place) -> None:
    submission = await place.submit()
    runner = ColdRunner()

    async def judged() -> bool:
        return (await place.jobs(submission))[0].state is JobState.SUCCEEDED

    async with dispatching(place.store, place.clock, [runner], call_s=0.05, offer_s=5.0):
        await until(judged)
    assert runner.asked == 1


async def test_a_worker_tells_that_it_lives_before_it_knows_what_it_offers(place: Place) -> None:
    seen: list[tuple[Worker, ...]] = []

    async def told() -> bool:
        seen.append(await place.store.workers.alive())
        return seen[-1] == (Worker("w", ("CPU",)),)

    async with dispatching(place.store, place.clock, [ColdRunner()]):
        await until(told)
    assert (Worker("w", None),) in seen
    assert await place.store.workers.alive() == ()


async def test_a_worker_that_is_stopped_does_not_wait_for_a_cold_runner(place: Place) -> None:
    begun = asyncio.get_running_loop().time()
    async with dispatching(place.store, place.clock, [ColdRunner()]) as running:
        await asyncio.sleep(0)
        await running.end()
        assert asyncio.get_running_loop().time() - begun < 0.15
