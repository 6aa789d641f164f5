"""Tests of the orders that a worker gets for its jobs."""

import pytest

from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.worker_queue import StoreQueue
from runners.contract.evaluation import CPU, RoundPolicy
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place

FEW = RoundPolicy(looks=(2,))


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


async def test_only_who_is_in_a_hurry_is_timed_for_fewer_rounds(place: Place) -> None:
    bob = await place.person("bob")
    config = DispatchConfig(rounds=FEW, rounds_for=frozenset({bob}))
    queue = StoreQueue(place.store, config)
    await place.submit(bob)
    await place.submit()
    jobs = [(await queue.claim({CPU: 1}))[0] for _ in range(2)]
    requests = {job.submission: await queue.request(job) for job in jobs}
    found = [requests[number] for number in sorted(requests)]
    assert [each and each.rounds for each in found] == [FEW, None]
    assert None not in found


async def test_otherwise_everybody_has_the_rounds_of_the_config(place: Place) -> None:
    queue = StoreQueue(place.store, DispatchConfig(rounds=FEW))
    await place.submit()
    (job,) = await queue.claim({CPU: 1})
    request = await queue.request(job)
    assert request is not None
    assert request.rounds == FEW
