"""What every store must do with boards whose ranked jobs one pool of machines alone times."""

from bot.domain.accounts import SYSTEM_IDENTITY
from bot.domain.board import NewBoard, Pins
from bot.domain.ids import is_system_submission
from bot.domain.job import SYSTEM_PRIORITY, Claim, Job, JobState
from bot.domain.scoring import ScoreValue
from bot.domain.submission import NewSubmission
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.stored import LEASE, Scene, make_evaluation, make_task

PINS = (("CPU", "box"),)


async def pin(scene: Scene, pins: Pins = PINS) -> None:
    assert (await scene.store.boards.pin(scene.board.id, pins)).pins == pins


async def claim(scene: Scene, slots: int = 1, **pools: int) -> tuple[Job, ...]:
    claim = Claim("w", {"CPU": slots}, LEASE, {"CPU": pools})
    return await scene.store.jobs.claim(claim)


async def time_reference(scene: Scene) -> None:
    house = await scene.store.people.ensure(SYSTEM_IDENTITY, "Podium")
    new = NewSubmission(
        person=house.id,
        board=scene.board.id,
        task_version=scene.board.task_version,
        file_name="reference.py",
        source="...",
        mode=Mode.RANKED,
        gpus=("CPU",),
        priority=SYSTEM_PRIORITY,
    )
    assert await scene.store.references.order(new)


async def test_a_board_keeps_its_pins(scene: Scene) -> None:
    boards = scene.store.boards
    assert scene.board.pins == ()
    await pin(scene)
    found = await boards.get(scene.board.id)
    assert found is not None
    assert found.pins == PINS
    new = NewBoard("other", ("H100", "L4"), None, scene.ada.id, pins=(("L4", "modal"),))
    assert (await boards.publish(new, make_task(), "digest")).pins == (("L4", "modal"),)
    assert [each.pins for each in await boards.all()] == [(("L4", "modal"),), PINS]


async def test_a_pinned_job_is_claimed_by_its_pool_alone(scene: Scene) -> None:
    await pin(scene)
    submission = await scene.submit()
    assert (await scene.job(submission.id)).pool == "box"
    assert await scene.claim() == ()
    assert await claim(scene, modal=1) == ()
    (job,) = await claim(scene, modal=1, box=1)
    assert (job.submission, job.pool, job.leased.pool) == (submission.id, "box", "box")


async def test_only_ranked_jobs_are_pinned(scene: Scene) -> None:
    await pin(scene)
    tested = await scene.submit(mode=Mode.TEST)
    assert (await scene.claim_one()).submission == tested.id


async def test_each_pool_takes_what_it_has_room_for_and_the_line_is_one(scene: Scene) -> None:
    other = await scene.store.boards.publish(
        NewBoard("other", ("CPU",), None, scene.ada.id, pins=PINS), make_task(), "digest"
    )
    at_box = Scene(scene.store, other, scene.ada)
    first, second = await at_box.submit(), await at_box.submit()
    third, fourth = await scene.submit(), await scene.submit()
    ahead = [
        await scene.store.jobs.ahead((await scene.job(each.id)).id) for each in (first, fourth)
    ]
    assert ahead == [0, 3]
    claimed = await claim(scene, 3, box=1, modal=2)
    assert [job.submission for job in claimed] == [first.id, third.id, fourth.id]
    assert [job.submission for job in await claim(scene, 3, box=3)] == [second.id]


async def test_before_a_pinned_job_are_those_of_its_own_pool_and_of_any(scene: Scene) -> None:
    await scene.submit()
    boards = [
        await scene.store.boards.publish(
            NewBoard(pool, ("CPU",), None, scene.ada.id, pins=(("CPU", pool),)), make_task(), pool
        )
        for pool in ("box", "modal")
    ]
    made = [await Scene(scene.store, each, scene.ada).submit() for each in (*boards, *boards)]
    ahead = [await scene.store.jobs.ahead((await scene.job(each.id)).id) for each in made]
    assert ahead == [1, 1, 2, 2]


async def test_jobs_that_have_not_ended_follow_their_board(
    scene: Scene, clock: ManualClock
) -> None:
    await scene.submit()
    held = await scene.claim_one()
    waiting = await scene.submit()
    tested = await scene.submit(mode=Mode.TEST)
    await pin(scene)
    pools = [(await scene.job(each)).pool for each in (held.submission, waiting.id, tested.id)]
    assert pools == ["box", "box", ""]
    assert await scene.store.jobs.accept(
        held.id, held.fence, make_evaluation(), ScoreValue(1.0, 0.1)
    )
    await pin(scene, (("CPU", "modal"),))
    assert (await scene.job(held.submission)).state is JobState.SUCCEEDED
    assert (await scene.job(held.submission)).pool == "box"
    clock.advance(LEASE.total_seconds())
    assert [job.submission for job in await claim(scene, 9, modal=9)] == [tested.id, waiting.id]


async def test_a_reference_is_timed_by_the_pool_and_again_by_another_one(scene: Scene) -> None:
    await pin(scene)
    await time_reference(scene)
    assert await scene.claim() == ()
    assert await scene.store.references.untimed() == ()
    await pin(scene, (("CPU", "modal"),))
    (job,) = await claim(scene, modal=1)
    assert is_system_submission(job.submission)
    evaluation, time = make_evaluation(), ScoreValue(812_000.0, 3_000.0)
    assert await scene.store.jobs.accept(job.id, job.fence, evaluation, time)
    await pin(scene, (("CPU", "modal"), ("H100", "box")))
    assert await scene.store.references.untimed() == ()
    await pin(scene, ())
    (untimed,) = await scene.store.references.untimed()
    assert untimed.gpu == "CPU"
