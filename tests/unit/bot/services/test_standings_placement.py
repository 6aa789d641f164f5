from bot.domain.ids import SubmissionId
from bot.services.standings import placements
from runners.contract.evaluation import CaseKind
from tests.doubles.factories import make_case, make_measurement
from tests.doubles.place import Place


async def ran(place: Place, name: str, time_ns: float) -> SubmissionId:
    case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns, 0))
    submission = await place.submit(await place.person(name))
    await place.judged(submission, cases=(case,))
    return submission.id


async def test_the_first_of_all_is_first_and_nothing_was_improved(place: Place) -> None:
    (won,) = await placements(place.store, await ran(place, "ada", 200))
    assert (won.gpu, won.rank, won.entries) == ("CPU", 1, 1)
    assert (won.shared, won.is_best, won.improved) == (False, True, False)
    assert won.value.time_ns == 200


async def test_a_slower_one_changes_no_place(place: Place) -> None:
    await ran(place, "bob", 100)
    await ran(place, "ada", 200)
    (won,) = await placements(place.store, await ran(place, "ada", 300))
    assert (won.rank, won.entries, won.is_best, won.improved) == (2, 2, False, False)


async def test_a_faster_one_is_a_personal_best(place: Place) -> None:
    await ran(place, "bob", 100)
    await ran(place, "ada", 200)
    (won,) = await placements(place.store, await ran(place, "ada", 50))
    assert (won.rank, won.entries, won.is_best, won.improved) == (1, 2, True, True)


async def test_times_that_cannot_be_told_apart_share_a_place(place: Place) -> None:
    await ran(place, "bob", 100.0)
    (won,) = await placements(place.store, await ran(place, "ada", 100.1))
    assert (won.rank, won.shared) == (1, True)


async def test_what_has_no_score_has_no_place(place: Place) -> None:
    submission = await place.submit()
    assert await placements(place.store, submission.id) == ()


async def test_a_placement_has_its_neighbors_and_the_persons_earlier_best(place: Place) -> None:
    for name, time_ns in (("bob", 100), ("ada", 400), ("ada", 300), ("eve", 500)):
        await ran(place, name, time_ns)
    (won,) = await placements(place.store, await ran(place, "ada", 200))
    assert won.previous is not None
    assert won.previous.time_ns == 300
    assert won.best == won.value
    assert won.ahead is not None
    assert (won.ahead.rank, won.ahead.score.value.time_ns) == (1, 100)
    assert won.behind is not None
    assert (won.behind.rank, won.behind.score.value.time_ns) == (3, 500)
    (slower,) = await placements(place.store, await ran(place, "ada", 350))
    assert slower.best is not None
    assert (slower.best.time_ns, slower.is_best) == (200, False)
