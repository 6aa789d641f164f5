"""What every store must count."""

from datetime import timedelta

from bot.domain.records import DayCount, Usage
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene, make_evaluation


async def test_days_people_and_verdicts_are_counted(scene: Scene, clock: ManualClock) -> None:
    counts, store = scene.store.statistics, scene.store
    since = clock.now()
    bob = await store.people.ensure("local:bob", "Bob")
    for person in (scene.ada, scene.ada, bob):
        await scene.submit(person)
    for verdict in (Verdict.PASSED, Verdict.CRASHED, Verdict.CRASHED):
        job = await scene.claim_one()
        assert await store.jobs.accept(job.id, job.fence, make_evaluation(verdict), None)
    clock.advance(2 * 86_400)
    await scene.submit(bob)
    first, last = since.date(), clock.now().date()
    assert await counts.people() == 2
    await scene.submit(await store.people.ensure("local:eve", "Eve"), judged_again=True)
    assert await counts.participants() == {scene.board.id: 2}
    assert await counts.days(since) == (DayCount(first, 3, 2), DayCount(last, 2, 2))
    assert await counts.verdicts(since) == {Verdict.PASSED: 1, Verdict.CRASHED: 2}
    later = since + timedelta(days=1)
    assert await counts.days(later) == (DayCount(last, 2, 2),)
    assert await counts.verdicts(later) == {}


async def test_time_on_gpus_is_counted_by_board_person_and_type(
    scene: Scene, clock: ManualClock
) -> None:
    store, since = scene.store, clock.now()
    bob = await store.people.ensure("local:bob", "Bob")
    used = ({"wall_s": 2.0}, {"wall_s": 3.0, "gpus": 4}, {"wall_s": 1.0, "used_s": 7.0})
    for person, spent in zip((scene.ada, bob, bob), used, strict=True):
        await scene.submit(person)
        job = await scene.claim_one()
        evaluation = make_evaluation().model_copy(update=spent)
        assert await store.jobs.accept(job.id, job.fence, evaluation, None)
    board, gpu = scene.board.name, "CPU"
    ada = Usage(board, scene.ada.name, gpu, 1, 2.0)
    assert await store.statistics.usage(since) == (ada, Usage(board, "Bob", gpu, 2, 19.0))
    assert await store.statistics.usage(since + timedelta(seconds=1)) == ()
