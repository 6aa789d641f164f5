from datetime import timedelta

from bot.domain.board import Viewer
from bot.domain.job import Claim
from bot.domain.scoring import ScoreValue
from bot.services.standings import scaling
from tests.doubles.factories import make_evaluation
from tests.doubles.place import Place


async def ran(place: Place, name: str, times: dict[str, float]) -> None:
    """Ranked on several GPU types at once."""
    await place.submit(await place.person(name), gpus=tuple(times))
    for gpu, time_ns in times.items():
        claim = Claim("test", {gpu: 1}, timedelta(seconds=30))
        (job,) = await place.store.jobs.claim(claim)
        value = ScoreValue(time_ns, 1.0)
        assert await place.store.jobs.accept(job.id, job.fence, make_evaluation(gpu=gpu), value)


async def test_people_are_compared_over_gpu_types(place: Place) -> None:
    await place.store.boards.configure(place.board.id, ("L4", "H100", "T4"), None)
    await ran(place, "bob", {"H100": 90.0})
    await ran(place, "ada", {"H100": 100.0, "L4": 400.0})
    await ran(place, "ada", {"L4": 300.0})
    await ran(place, "eve", {"H100": 200.0, "L4": 500.0})
    found = await scaling(place.store, Viewer(place.ada), "vectoradd")
    assert found.gpus == ("H100", "L4")
    assert [each.person_name for each in found.people] == ["ada", "eve", "bob"]
    assert {gpu: value.time_ns for gpu, value in found.people[0].values.items()} == {
        "H100": 100.0,
        "L4": 300.0,
    }


async def test_an_empty_board_has_nobody_to_compare(place: Place) -> None:
    found = await scaling(place.store, Viewer(place.ada), "vectoradd")
    assert (found.gpus, found.people) == ((), ())
