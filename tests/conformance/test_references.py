"""What every store must do with the times of references."""

import asyncio
from datetime import timedelta

from bot.domain.accounts import SYSTEM_IDENTITY
from bot.domain.costs import UsageKind, day_of
from bot.domain.ids import TaskVersionId, is_system_submission
from bot.domain.job import SYSTEM_PRIORITY, Job
from bot.domain.records import DayCount
from bot.domain.reference_times import FAILED, Reference, Untimed
from bot.domain.scoring import ScoreValue
from bot.domain.submission import NewSubmission
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene, make_evaluation, make_task

SOURCE = "from reference import ref_kernel as custom_kernel\n"
TIME = ScoreValue(812_000.0, 3_000.0)


async def order(scene: Scene, gpu: str = "CPU") -> bool:
    """What the service orders; False when it was ordered before."""
    house = await scene.store.people.ensure(SYSTEM_IDENTITY, "Podium")
    return await scene.store.references.order(
        NewSubmission(
            person=house.id,
            board=scene.board.id,
            task_version=scene.board.task_version,
            file_name="reference.py",
            source=SOURCE,
            mode=Mode.RANKED,
            gpus=(gpu,),
            priority=SYSTEM_PRIORITY,
        )
    )


async def of(scene: Scene) -> Reference:
    found = await scene.store.references.of(scene.board.task_version, "CPU")
    assert found is not None
    return found


async def ordered(scene: Scene) -> Job:
    assert await order(scene)
    job = await scene.claim_one()
    assert is_system_submission(job.submission)
    return job


async def test_each_present_version_and_gpu_type_is_lacking_until_it_is_dealt_with(
    scene: Scene,
) -> None:
    references, board = scene.store.references, scene.board
    await scene.store.boards.configure(board.id, ("CPU", "H100"), None)
    cpu, h100 = (Untimed(board.id, board.task_version, gpu) for gpu in ("CPU", "H100"))
    assert await references.untimed() == (cpu, h100)
    assert await order(scene)
    assert await references.untimed() == (h100,)
    assert await references.mark_untimeable(board.task_version, "H100")
    assert await references.untimed() == ()
    assert await references.of(board.task_version, "H100") == Reference(None)
    new = await scene.store.boards.add_version(board.id, make_task(description="new"), "digest-2")
    assert [each.task_version for each in await references.untimed()] == [new.id, new.id]
    await scene.store.boards.add_version(board.id, make_task(), "digest-1")
    assert await references.untimed() == ()


async def test_of_many_orders_at_once_one_is_stored(scene: Scene) -> None:
    assert sum(await asyncio.gather(*(order(scene) for _ in range(5)))) == 1
    assert not await order(scene)
    assert not await scene.store.references.mark_untimeable(scene.board.task_version, "CPU")
    assert len(await scene.claim(9)) == 1


async def test_an_unknown_version_is_never_stored(scene: Scene) -> None:
    assert not await scene.store.references.mark_untimeable(TaskVersionId(999), "CPU")


async def test_people_s_submissions_are_numbered_without_it(scene: Scene) -> None:
    job = await ordered(scene)
    assert is_system_submission(job.submission)
    own = await scene.submit()
    assert not is_system_submission(own.id)
    assert await scene.store.submissions.source(job.submission) == SOURCE


async def test_everybody_s_job_goes_before_it(scene: Scene) -> None:
    await order(scene)
    test = await scene.submit(mode=Mode.TEST)
    ranked = await scene.submit()
    first, second, last = await scene.claim(9)
    assert (first.submission, second.submission) == (test.id, ranked.id)
    assert is_system_submission(last.submission)


async def test_its_time_is_stored_once_with_the_machine(scene: Scene, clock: ManualClock) -> None:
    job = await ordered(scene)
    assert await of(scene) == Reference(job.submission)
    assert await scene.store.jobs.accept(job.id, job.fence, make_evaluation(), TIME)
    assert not await scene.store.jobs.accept(
        job.id, job.fence, make_evaluation(), ScoreValue(1.0, 0.0)
    )
    assert await of(scene) == Reference(job.submission, TIME, "x", clock.now())
    assert await scene.store.references.record_failures() == ()


async def test_it_counts_nowhere_else(scene: Scene, clock: ManualClock) -> None:
    store, version = scene.store, scene.board.task_version
    job = await ordered(scene)
    await store.jobs.accept(job.id, job.fence, make_evaluation(), TIME)
    assert await store.results.scores(version, "CPU") == ()
    assert await store.outbox.unannounced() == ()
    assert await store.results.durations(version, "CPU", 9) == ()
    assert await store.results.gpu_durations("CPU", 9) == ()
    assert await store.submissions.to(scene.board.id) == ()
    assert await store.costs.counted(day_of(clock.now())) == ()
    (used,) = await store.costs.usage(day_of(clock.now()))
    assert used.kind is UsageKind.REFERENCE
    assert await store.statistics.people() == 1
    assert await store.statistics.participants() == {}
    assert await store.statistics.days(clock.now()) == ()
    assert await store.statistics.verdicts(clock.now()) == {}
    own = await scene.submit()
    assert await store.submissions.to(scene.board.id) == (own,)
    assert await store.statistics.days(clock.now()) == (DayCount(clock.now().date(), 1, 1),)


async def test_a_failure_is_noted_once_and_is_nobody_s_refusal(
    scene: Scene, clock: ManualClock
) -> None:
    references = scene.store.references
    job = await ordered(scene)
    assert await references.record_failures() == ()
    crash = make_evaluation(Verdict.CRASHED, "out of\0memory")
    await scene.store.jobs.accept(job.id, job.fence, crash, None)
    assert (await of(scene)).failure == "crashed: out of␀memory"
    assert await scene.store.results.refusals(scene.board.task_version, "CPU") == ()
    noted = await asyncio.gather(*(references.record_failures() for _ in range(3)))
    told = ("board vectoradd version 1 on CPU", "crashed: out of␀memory")
    assert [each for each in noted if each] == [(told,)]
    assert await references.record_failures() == ()
    rows = [each for each in await scene.store.audit.rows() if each.action == FAILED]
    assert [(row.actor, row.subject, row.reason, row.at) for row in rows] == [
        (None, *told, clock.now())
    ]


async def test_a_job_that_was_given_up_is_a_failure_too(scene: Scene) -> None:
    job = await ordered(scene)
    await scene.store.jobs.release(job.id, job.fence, "no runner", final=True)
    assert (await of(scene)).failure == "no runner"
    assert len(await scene.store.references.record_failures()) == 1


async def test_what_was_given_up_is_tried_again_later_and_a_verdict_is_final(
    scene: Scene, clock: ManualClock
) -> None:
    references, day = scene.store.references, timedelta(days=1)
    job = await ordered(scene)
    await scene.store.jobs.release(job.id, job.fence, "no runner", final=True)
    assert await references.record_failures()
    assert await references.delete_given_up(day) == 0
    clock.advance(day.total_seconds() + 1)
    assert await references.delete_given_up(day) == 1
    again = await ordered(scene)
    assert again.submission != job.submission
    await scene.store.jobs.accept(again.id, again.fence, make_evaluation(Verdict.CRASHED), None)
    clock.advance(day.total_seconds() + 1)
    assert await references.delete_given_up(day) == 0
    assert await references.untimed() == ()
    assert await scene.store.boards.delete(scene.board.id)


async def test_it_goes_with_its_board(scene: Scene) -> None:
    job = await ordered(scene)
    await scene.store.jobs.accept(job.id, job.fence, make_evaluation(), TIME)
    await scene.store.boards.configure(scene.board.id, ("CPU", "L4"), None)
    await scene.store.references.mark_untimeable(scene.board.task_version, "L4")
    assert await scene.store.boards.delete(scene.board.id)
    assert await scene.store.references.of(scene.board.task_version, "CPU") is None
    assert await scene.store.references.untimed() == ()


async def test_its_usual_time_is_that_of_the_first_run_of_a_version(scene: Scene) -> None:
    references, version = scene.store.references, scene.board.task_version
    both = await asyncio.gather(references.usual(version, [1e6]), references.usual(version, [2e6]))
    assert both[0] == both[1]
    assert await references.usual(version, [3e6]) == both[0]
    assert both[0] in {(1e6,), (2e6,)}
