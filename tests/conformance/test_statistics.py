"""What every store must count."""

from datetime import timedelta

from bot.domain.records import DayCount
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
