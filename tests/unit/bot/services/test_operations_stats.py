from bot.services.operations import DAYS, stats
from runners.contract.verdict import Verdict
from tests.doubles.place import Place


async def test_two_weeks_are_counted_and_older_days_are_not(place: Place) -> None:
    await place.judged(await place.submit(), verdict=Verdict.CRASHED)
    place.clock.advance(DAYS * 86_400)
    await place.judged(await place.submit())
    await place.submit(await place.person("bob"))
    found = await stats(place.store, place.clock)
    assert (found.people, found.boards) == (2, 1)
    (day,) = found.days
    assert (day.day, day.submissions, day.people) == (place.clock.now().date(), 2, 2)
    assert found.verdicts == {Verdict.PASSED: 1}
    assert found.backlog == {"CPU": {"queued": 1}}
    (usage,) = found.usage
    assert (usage.gpu, usage.evaluations) == ("CPU", 1)
