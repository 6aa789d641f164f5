from bot.domain.board import Viewer
from bot.services.history import personal_board
from runners.contract.evaluation import CaseKind
from tests.doubles.factories import make_case, make_measurement
from tests.doubles.place import Place


async def ran(place: Place, name: str, time_ns: float) -> None:
    case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns, 0))
    await place.judged(await place.submit(await place.person(name)), cases=(case,))


async def test_only_ones_own_way_is_shown(place: Place) -> None:
    for name, time_ns in [("bob", 100), ("ada", 400), ("ada", 200)]:
        await ran(place, name, time_ns)
    found = await personal_board(place.store, Viewer(place.ada), "vectoradd")
    (own,) = found.standings
    assert (own.gpu, own.standing.rank, own.entries) == ("CPU", 2, 2)
    assert [each.value.time_ns for each in own.scores] == [400, 200]
    assert len(found.past) == 2


async def test_who_has_no_score_has_no_standing(place: Place) -> None:
    await ran(place, "bob", 100)
    await place.submit()
    found = await personal_board(place.store, Viewer(place.ada), "vectoradd")
    assert (found.standings, len(found.past)) == ((), 1)
