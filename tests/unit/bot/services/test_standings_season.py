from datetime import timedelta

import pytest

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.services.standings import season
from runners.contract.evaluation import CaseKind
from tests.doubles.factories import make_case, make_measurement
from tests.doubles.place import Place


async def ran(place: Place, name: str, time_ns: float) -> None:
    case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns, 0))
    await place.judged(await place.submit(await place.person(name)), cases=(case,))
    place.clock.advance(3600)


async def test_scores_come_in_the_order_of_the_season_with_its_records(place: Place) -> None:
    for name, time_ns in [("bob", 300), ("ada", 400), ("ada", 200)]:
        await ran(place, name, time_ns)
    found = await season(place.store, place.clock, Viewer(place.ada), "vectoradd")
    assert [each.value.time_ns for each in found.scores] == [300, 400, 200]
    assert [each.value.time_ns for each in found.records] == [300, 200]
    assert [each.score.person_name for each in found.leaderboard.entries] == ["ada", "bob"]
    assert found.until == place.clock.now()


async def test_of_a_long_season_the_records_and_a_part_of_the_rest_are_read(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.services.standings.MAX_HISTORY", 2)
    for time_ns in (300, 400, 200, 500, 600):
        await ran(place, "ada", time_ns)
    found = await season(place.store, place.clock, Viewer(place.ada), "vectoradd")
    assert [each.value.time_ns for each in found.records] == [300, 200]
    assert (len(found.scores), found.total) == (3, 5)


async def test_the_view_ends_with_the_season(place: Place) -> None:
    deadline = place.clock.now() + timedelta(minutes=30)
    await place.store.boards.configure(place.board.id, ("CPU",), deadline)
    await ran(place, "bob", 300)
    found = await season(place.store, place.clock, Viewer(place.ada), "vectoradd")
    assert found.until == deadline


async def test_a_gpu_type_can_be_named(place: Place) -> None:
    viewer = Viewer(place.ada)
    await place.store.boards.configure(place.board.id, ("CPU", "H100"), None)
    found = await season(place.store, place.clock, viewer, "vectoradd", gpu="h100")
    assert (found.leaderboard.gpu, found.scores) == ("H100", ())
    with pytest.raises(UserError, match="L4"):
        await season(place.store, place.clock, viewer, "vectoradd", gpu="L4")
