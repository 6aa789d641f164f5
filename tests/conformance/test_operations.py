"""What every store must count for whoever watches an installation."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.domain.job import Job
from bot.domain.records import BUCKETS_S
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store.statistics import bucket_of, counted
from tests.doubles.stored import LEASE, Scene, make_evaluation


async def _accept(scene: Scene, job: Job, verdict: Verdict, wall_s: float) -> None:
    evaluation = make_evaluation(verdict).model_copy(update={"wall_s": wall_s})
    assert await scene.store.jobs.accept(job.id, job.fence, evaluation, None)


async def test_evaluations_are_tallied_by_how_long_they_took_and_waited(
    scene: Scene, clock: ManualClock
) -> None:
    for wall_s in (0.1, 0.3, 4000.0):
        await scene.submit()
        clock.advance(7)
        await _accept(scene, await scene.claim_one(), Verdict.PASSED, wall_s)
    await scene.submit(mode=Mode.TEST)
    await _accept(scene, await scene.claim_one(), Verdict.CRASHED, 1.5)
    passed, crashed = await scene.store.operations.tallies()
    assert (passed.gpu, passed.mode, passed.verdict) == ("CPU", "ranked", "passed")
    assert (passed.evaluations, passed.judged_s, passed.waited_s) == (3, 4000.4, 21.0)
    assert passed.judged == counted([0.1, 0.3, 4000.0])
    assert passed.waited == counted([7.0, 7.0, 7.0])
    assert (crashed.mode, crashed.verdict, crashed.evaluations) == ("test", "crashed", 1)


async def test_every_edge_of_a_bucket_is_the_same_in_every_store(scene: Scene) -> None:
    durations = [part for edge in BUCKETS_S for part in (edge * 0.999, edge, edge * 1.001)]
    for wall_s in durations:
        await scene.submit()
        await _accept(scene, await scene.claim_one(), Verdict.PASSED, wall_s)
    [tally] = await scene.store.operations.tallies()
    assert tally.judged == counted(durations)


async def test_what_is_deleted_stays_counted(scene: Scene) -> None:
    await scene.submit()
    await _accept(scene, await scene.claim_one(), Verdict.PASSED, 1.0)
    before = await scene.store.operations.tallies()
    await scene.store.boards.delete(scene.board.id)
    assert await scene.store.operations.tallies() == before


async def test_leases_that_run_out_are_counted(scene: Scene, clock: ManualClock) -> None:
    assert await scene.store.operations.lost_leases() == {}
    for _ in range(2):
        await scene.submit()
    await scene.claim(2)
    clock.advance(2 * LEASE.total_seconds())
    assert await scene.store.jobs.requeue_expired() == 2
    assert await scene.store.operations.lost_leases() == {"CPU": 2}
    clock.advance(60)
    await scene.claim(1)
    clock.advance(2 * LEASE.total_seconds())
    await scene.store.jobs.requeue_expired()
    assert await scene.store.operations.lost_leases() == {"CPU": 3}


async def test_the_longest_wait_is_that_of_a_job_that_could_begin(
    scene: Scene, clock: ManualClock
) -> None:
    operations, began = scene.store.operations, clock.now()
    assert await operations.waiting_since() == {}
    await scene.submit()
    clock.advance(5)
    await scene.submit()
    assert await operations.waiting_since() == {"CPU": began}
    job = await scene.claim_one()
    assert await operations.waiting_since() == {"CPU": began + timedelta(seconds=5)}
    await scene.store.jobs.release(job.id, job.fence, "ours", final=False)  # due in a moment only
    assert await operations.waiting_since() == {"CPU": began + timedelta(seconds=5)}


async def test_a_store_in_use_is_as_new_as_its_code(scene: Scene) -> None:
    schema = await scene.store.operations.schema()
    assert schema.present == schema.known


@given(st.lists(st.floats(min_value=0, max_value=1e6)))
def test_every_duration_is_in_one_bucket(durations: list[float]) -> None:
    counts = counted(durations)
    assert sum(counts) == len(durations)
    assert len(counts) == len(BUCKETS_S) + 1


def test_a_bucket_ends_below_its_edge() -> None:
    assert [bucket_of(each) for each in (0.0, 0.0999, 0.1, 3599.0, 3600.0, 1e9)] == [
        0, 0, 1, 11, 12, 12,
    ]  # fmt: skip
