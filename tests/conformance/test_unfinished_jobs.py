"""What every store must return about running and waiting jobs: person, board and order."""

from bot.domain.job import JobState
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene


async def test_jobs_are_listed_in_the_order_of_the_queue(scene: Scene, clock: ManualClock) -> None:
    eve = await scene.store.people.ensure("local:eve", "Eve")
    first = await scene.submit()
    stored_at = clock.now()
    second, third = await scene.submit(), await scene.submit()
    clock.advance(5)
    of_eve = await scene.submit(eve)
    quick = await scene.submit(eve, mode=Mode.TEST)
    on_both = await scene.submit(gpus=("CPU", "H100"))
    claimed = await scene.claim_one()
    assert claimed.submission == quick.id
    found = await scene.store.jobs.unfinished(("H100", "CPU", "L4"), 100)
    assert [(each.gpu, each.state, each.submission, each.position) for each in found] == [
        ("H100", JobState.QUEUED, on_both.id, 1),
        ("CPU", JobState.RUNNING, quick.id, 1),
        ("CPU", JobState.QUEUED, first.id, 1),
        ("CPU", JobState.QUEUED, of_eve.id, 2),
        ("CPU", JobState.QUEUED, second.id, 3),
        ("CPU", JobState.QUEUED, third.id, 4),
        ("CPU", JobState.QUEUED, on_both.id, 5),
    ]
    running, waiting = found[1], found[2]
    assert (running.person_name, running.person, running.mode) == ("Eve", eve.id, Mode.TEST)
    assert running.since == clock.now()
    assert (waiting.person_name, waiting.board, waiting.since) == (
        "Ada",
        scene.board.id,
        stored_at,
    )
    few = await scene.store.jobs.unfinished(("CPU",), 2)
    assert [each.submission for each in few] == [quick.id, first.id, of_eve.id]
    assert await scene.store.jobs.unfinished((), 2) == ()
    own = await scene.store.jobs.unfinished(("CPU",), 1, scene.ada.id)
    assert [(each.submission, each.position) for each in own] == [
        (quick.id, 1), (first.id, 1), (second.id, 3), (third.id, 4), (on_both.id, 5),
    ]  # fmt: skip


async def test_jobs_that_ended_are_not_listed(scene: Scene) -> None:
    submission = await scene.submit()
    await scene.store.jobs.request_cancel(submission.id)
    assert await scene.store.jobs.unfinished(("CPU",), 9) == ()
