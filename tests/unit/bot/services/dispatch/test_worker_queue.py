"""Tests of the orders that a worker gets for its jobs."""

import pytest

from bot.domain.scoring import ScoreValue
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.worker_queue import StoreQueue
from runners.contract.comparison import Ratio
from runners.contract.evaluation import CPU, CaseKind, RoundPolicy
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_case, make_evaluation, make_measurement
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


async def scored(place: Place, time_ns: float, **changes: object) -> ScoreValue | None:
    """The score of a new submission whose run on the CPU measured this."""
    await place.submit()
    queue = StoreQueue(place.store, DispatchConfig())
    (job,) = await queue.claim({CPU: 1})
    request = await queue.request(job)
    assert request is not None
    measured = make_measurement(time_ns, 0.4 * time_ns).model_copy(update=changes)
    cases = (make_case(CaseKind.BENCHMARK, measurement=measured),)
    evaluation = make_evaluation(mode=job.mode, request_id=f"job-{job.id}", cases=cases)
    assert await queue.accept(job, request, evaluation)
    (found,) = await place.store.results.outcomes((job.submission,))
    return found.score


async def test_on_the_cpu_the_ratio_to_the_reference_ranks_whatever_the_machines_speed(
    place: Place,
) -> None:
    half = {"vs_reference": Ratio(ratio=0.5, half_width=0.01, rounds=5)}
    wide = {"vs_reference": Ratio(ratio=0.5, half_width=0.2, rounds=5)}
    assert await scored(place, 9e6, **wide) is None  # too noisy, and sets nothing
    first, slow = [await scored(place, time_ns, **half) for time_ns in (1e6, 1.7e6)]
    assert first is not None
    assert slow is not None
    assert (slow.time_ns, slow.half_width_ns) == pytest.approx((1e6, 0.02e6))
    assert (first.time_ns, first.half_width_ns) == pytest.approx((1e6, 0.02e6))
    assert await scored(place, 1.7e6) is None  # without a ratio, the noise of the time counts
