"""Which GPU time every store must count, and how quotas hold jobs back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.costs import GpuTime, Quota, QuotaKey, Unit, Usage, UsageKind, day_after, day_of
from bot.domain.ids import BoardId
from bot.domain.job import Job, JobState
from bot.domain.publication import NewPublication
from bot.ports import Store
from runners.contract.evaluation import Evaluation, EvaluationRequest
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.stored import LEASE, Scene, make_evaluation, make_task

EACH = QuotaKey(Unit.SECONDS)


def used(seconds: float, verdict: Verdict = Verdict.PASSED) -> Evaluation:
    return make_evaluation(verdict).model_copy(update={"wall_s": seconds})


async def end(store: Store, job: Job, seconds: float) -> None:
    assert await store.jobs.accept(job.id, job.fence, used(seconds), None)


async def spent(store: Store, clock: ManualClock) -> list[tuple[UsageKind, float]]:
    """What was used today, by kind."""
    found = await store.costs.usage(day_of(clock.now()))
    return sorted((each.kind, each.seconds) for each in found)


async def states(scene: Scene) -> list[tuple[JobState, bool]]:
    """The state of each job, and whether it waits for a quota, oldest first."""
    made = await scene.store.submissions.to(scene.board.id)
    jobs = [await scene.job(each.id) for each in made]
    return [(job.state, bool(job.waits)) for job in jobs]


async def test_gpu_time_is_counted_by_day_board_person_and_gpu_type(
    scene: Scene, clock: ManualClock
) -> None:
    store, since = scene.store, clock.now()
    bob = await store.people.ensure("local:bob", "Bob")
    each = ({"wall_s": 2.0}, {"wall_s": 3.0, "gpus": 4}, {"wall_s": 1.0, "used_s": 7.0})
    for person, spent_on in zip((scene.ada, bob, bob), each, strict=True):
        await scene.submit(person)
        job = await scene.claim_one()
        evaluation = make_evaluation().model_copy(update=spent_on)
        assert await store.jobs.accept(job.id, job.fence, evaluation, None)
    day, board = since.date(), scene.board.name
    ada = Usage(day, board, scene.ada.id, scene.ada.name, "CPU", UsageKind.SUBMISSION, 1, 2.0)
    both = (ada, Usage(day, board, bob.id, "Bob", "CPU", UsageKind.SUBMISSION, 2, 19.0))
    assert await store.costs.usage(since) == both
    assert await store.costs.usage(since, scene.ada.id) == (ada,)
    assert await store.costs.usage(since + timedelta(seconds=1)) == ()


async def test_used_time_stays_when_its_board_is_deleted(scene: Scene, clock: ManualClock) -> None:
    await scene.submit(limit_s=60)
    await end(scene.store, await scene.claim_one(), 5.0)
    await scene.store.costs.set_quota(Quota(replace(EACH, board=scene.board.id), 60))
    await scene.store.boards.delete(scene.board.id)
    assert await spent(scene.store, clock) == [(UsageKind.SUBMISSION, 5.0)]
    assert await scene.store.costs.quotas() == ()


async def test_internal_errors_and_rejudging_count_for_no_quota(
    scene: Scene, clock: ManualClock
) -> None:
    store = scene.store
    await scene.submit(limit_s=60, cards=2)
    job = await scene.claim_one()
    assert await store.jobs.release(job.id, job.fence, "boom", final=False, used_s=3.0)
    clock.advance(10)
    job = await scene.claim_one()
    clock.advance(4)
    assert await store.jobs.mark_lost(job.id, job.fence, "gone")
    clock.advance(100)
    job = await scene.claim_one()
    assert await store.jobs.return_to_queue(job.id, job.fence)
    job = await scene.claim_one()
    clock.advance(500)  # longer than the lease and the limit
    assert await store.jobs.requeue_expired() == 1
    clock.advance(500)
    job = await scene.claim_one()
    assert await store.jobs.accept(job.id, job.fence, used(7.0, Verdict.TASK_ERROR), None)
    await scene.submit(judged_again=True, limit_s=60)
    again = await scene.claim_one()
    assert await store.costs.counted(day_of(clock.now())) == (), "nothing is reserved either"
    await end(store, again, 9.0)
    found = await store.costs.usage(day_of(clock.now()))
    assert {(each.kind, each.evaluations, each.seconds) for each in found} == {
        (UsageKind.FAULT, 4, 3.0 + 4.0 + 60.0 + 7.0),
        (UsageKind.REJUDGE, 1, 9.0),
    }
    assert await store.costs.counted(day_of(clock.now())) == ()


async def test_the_time_of_a_cancelled_run_counts(scene: Scene, clock: ManualClock) -> None:
    made = await scene.submit(limit_s=60)
    job = await scene.claim_one()
    await scene.store.jobs.request_cancel(made.id)
    assert await scene.store.jobs.end_cancelled(job.id, job.fence, 50.0)
    assert await spent(scene.store, clock) == [(UsageKind.SUBMISSION, 50.0)]
    waiting = await scene.submit(limit_s=60)
    await scene.store.jobs.request_cancel(waiting.id)
    assert await spent(scene.store, clock) == [(UsageKind.SUBMISSION, 50.0)]


async def test_the_runs_of_a_check_count_for_the_person_who_publishes(
    scene: Scene, clock: ManualClock
) -> None:
    store, runs, task = scene.store, scene.store.check_runs, make_task()
    number = await store.publications.add(NewPublication("web", scene.ada.id, b"PK", "{}"))
    await store.publications.claim("web", "engine", LEASE)
    await runs.store_task(number, "d", task.model_dump_json())
    order = EvaluationRequest(request_id="r", task=task, source="x", mode=Mode.RANKED)
    _, later = [await runs.add(number, key, order, "d") for key in ("one", "two")]
    job = await scene.claim_one()
    assert job.limit_s == task.limit_s(Mode.RANKED)
    assert await runs.accept(job.id, job.fence, used(8.0))
    await store.costs.set_quota(Quota(EACH, 100))
    assert await scene.claim() == ()
    assert later is not None
    waiting = await runs.get(later)
    assert waiting is not None
    assert "more than each person's 100 s" in waiting.waits
    day = day_of(clock.now())
    counted = await store.costs.counted(day)
    assert counted == (GpuTime(scene.ada.id, None, "CPU", 8.0),)
    (only,) = await store.costs.usage(day)
    assert (only.kind, only.board, only.seconds) == (UsageKind.CHECK, "", 8.0)


async def test_used_time_stays_when_its_check_is_deleted(scene: Scene, clock: ManualClock) -> None:
    store, runs = scene.store, scene.store.check_runs
    number = await store.publications.add(NewPublication("web", scene.ada.id, b"PK", "{}"))
    await store.publications.claim("web", "engine", LEASE)
    await runs.store_task(number, "d", make_task().model_dump_json())
    order = EvaluationRequest(request_id="r", task=make_task(), source="x", mode=Mode.RANKED)
    await runs.add(number, "one", order, "d")
    await scene.claim_one()
    await store.publications.finish(number, "engine")
    (only,) = await store.costs.usage(day_of(clock.now()) - timedelta(days=36500))
    assert (only.kind, only.person_id) == (UsageKind.CHECK, scene.ada.id)


async def test_quotas_are_set_replaced_listed_and_dropped(scene: Scene) -> None:
    costs, board = scene.store.costs, scene.board.id
    keys = (
        EACH,
        QuotaKey(Unit.DOLLARS, each_person=False),
        QuotaKey(Unit.SECONDS, gpu="L4"),
        QuotaKey(Unit.SECONDS, board=board),
        QuotaKey(Unit.SECONDS, each_person=False, board=board, gpu="L4"),
    )
    for key in reversed(keys):
        await costs.set_quota(Quota(key, 7.5))
    await costs.set_quota(Quota(EACH, 9.0))
    assert await costs.quotas() == (Quota(EACH, 9.0), *(Quota(key, 7.5) for key in keys[1:]))
    assert await costs.drop_quota(keys[1])
    assert not await costs.drop_quota(keys[1])
    assert not await costs.drop_quota(replace(EACH, board=BoardId(board + 1)))
    assert len(await costs.quotas()) == len(keys) - 1


async def test_a_quota_of_one_person_holds_only_that_person_back(scene: Scene) -> None:
    store = scene.store
    bob = await store.people.ensure("local:bob", "Bob")
    own = Quota(replace(EACH, person=bob.id), 60, "too *many* runs")
    await store.costs.set_quota(Quota(own.key, 90))
    await store.costs.set_quota(own)
    assert await store.costs.quotas() == (own,)
    for person in (bob, bob, scene.ada, scene.ada):
        await scene.submit(person, limit_s=60)
    assert len(await scene.claim(4)) == 3
    running, waiting = (JobState.RUNNING, False), (JobState.QUEUED, True)
    assert await states(scene) == [running, waiting, running, running]
    held = (await store.submissions.to(scene.board.id))[1]
    words = "which may still use the personal limit of 60 s a day (too *many* runs)"
    assert words in (await scene.job(held.id)).waits
    assert not await store.costs.drop_quota(EACH)
    assert not await store.costs.drop_quota(replace(EACH, person=scene.ada.id))
    assert await store.costs.drop_quota(own.key)


async def test_a_job_waits_for_running_ones_and_starts_when_they_used_less(
    scene: Scene, clock: ManualClock
) -> None:
    await scene.store.costs.set_quota(Quota(EACH, 150))
    for _ in range(4):
        await scene.submit(limit_s=60)
    first, second = await scene.claim(4)
    running, waiting = (JobState.RUNNING, False), (JobState.QUEUED, True)
    assert await states(scene) == [running, running, waiting, waiting]
    times = await scene.store.costs.counted(day_of(clock.now()))
    assert sum(each.reserved_s for each in times) == 120.0
    await end(scene.store, first, 10.0)
    await end(scene.store, second, 20.0)
    clock.advance(3)
    third, fourth = await scene.claim(4)
    assert (third.waits, fourth.waits) == ("", "")
    await end(scene.store, third, 60.0)
    await end(scene.store, fourth, 59.0)
    await scene.submit(limit_s=60)
    assert await scene.claim(4) == ()
    last = (await scene.store.submissions.to(scene.board.id))[-1]
    words = (await scene.job(last.id)).waits
    assert words.startswith("1 s of each person's 150 s a day are left")
    assert "it starts on the next day (UTC)" in words
    clock.advance((day_after(clock.now()) - clock.now()).total_seconds())
    assert [job.submission for job in await scene.claim(4)] == [last.id]


async def test_a_crash_between_claim_and_end_frees_what_was_reserved(
    scene: Scene, clock: ManualClock
) -> None:
    await scene.store.costs.set_quota(Quota(EACH, 100))
    await scene.submit(limit_s=60)
    await scene.submit(limit_s=60)
    (lost,) = await scene.claim(2)
    clock.advance(LEASE.total_seconds() - 1)
    assert await scene.store.jobs.requeue_expired() == 0
    assert await scene.claim(2) == ()
    clock.advance(4)
    assert await scene.store.jobs.requeue_expired() == 1
    assert await scene.store.costs.counted(day_of(clock.now())) == ()
    clock.advance(60)
    (again,) = await scene.claim(2)
    assert not await scene.store.jobs.accept(lost.id, lost.fence, used(50.0), None)
    await end(scene.store, again, 30.0)
    times = await scene.store.costs.counted(day_of(clock.now()))
    assert times == (GpuTime(scene.ada.id, scene.board.id, "CPU", 30.0),)


async def test_a_person_without_gpu_time_left_delays_no_other_person(scene: Scene) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    await scene.store.costs.set_quota(Quota(EACH, 60))
    for _ in range(30):
        await scene.submit(limit_s=60)
    theirs = await scene.submit(bob, limit_s=60)
    again = await scene.submit(judged_again=True, limit_s=60)
    short = await scene.submit(mode=Mode.TEST, limit_s=1)
    claimed = {job.submission for job in await scene.claim(40)}
    assert claimed == {theirs.id, again.id, short.id}  # no ranked job of Ada fits beside her test
    assert await scene.claim(40) == ()


@pytest.mark.parametrize("board_matters", [True, False])
async def test_a_quota_of_everyone_on_one_type_and_board_holds_only_those_back(
    scene: Scene, *, board_matters: bool
) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    board = scene.board.id if board_matters else None
    key = QuotaKey(Unit.SECONDS, each_person=False, board=board, gpu="L4")
    await scene.store.costs.set_quota(Quota(key, 100))
    for person in (scene.ada, bob):
        await scene.submit(person, ("CPU", "L4"), limit_s=60)
    assert len(await scene.claim(2, "L4")) == 1
    assert len(await scene.claim(2, "CPU")) == 2


async def test_a_job_on_several_cards_needs_time_on_each(scene: Scene) -> None:
    await scene.store.costs.set_quota(Quota(EACH, 100))
    await scene.submit(gpus=("L4", "CPU"), limit_s=60, cards=2)
    assert await scene.claim(1, "L4") == ()
    (on_cpu,) = await scene.claim(1, "CPU")
    assert (on_cpu.limit_s, on_cpu.cards) == (60.0, 1)
