"""Tests of the ranked lists that other sites read."""

import pytest

from bot.domain.access import Access, Visibility
from bot.domain.submission import Submission
from runners.contract.evaluation import CaseKind
from runners.contract.task import Mode
from tests.doubles.factories import make_case, make_measurement
from tests.doubles.place import Place
from tests.doubles.popcorn_cli import PopcornCli


async def ranked(place: Place, name: str, time_ns: float) -> Submission:
    person = await place.person(name)
    submission = await place.submit(person, mode=Mode.RANKED, file_name=f"{name}.py")
    timed = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns))
    await place.judged(submission, cases=(make_case(), make_case(), timed))
    return submission


@pytest.fixture
async def three(place: Place) -> list[Submission]:
    """Two that share a rank and a third, and one that was slower than its person's best."""
    return [
        await ranked(place, name, time_ns)
        for name, time_ns in (("ken", 2000.0), ("ada", 2000.0), ("eve", 3000.0), ("ken", 9000.0))
    ]


async def test_the_best_of_each_person_is_listed_with_shared_ranks(
    place: Place, anybody: PopcornCli, three: list[Submission]
) -> None:
    first, *rest = await anybody.get("/submissions/VectorAdd/cpu")
    assert first == {
        "submission_name": "ken.py",
        "submission_id": three[0].id,
        "user_id": three[0].person,
        "submission_time": three[0].created_at.isoformat(),
        "submission_score": 0.000002,
        "user_name": "ken",
        "rank": 1,
        "leaderboard_name": "vectoradd",
        "gpu_type": "CPU",
    }
    assert [(each["user_name"], each["rank"]) for each in rest] == [("ada", 1), ("eve", 3)]
    assert place.board.name == "vectoradd"


@pytest.mark.usefixtures("three")
async def test_a_list_comes_in_pages(anybody: PopcornCli) -> None:
    for query, names in (("limit=1", ["ken"]), ("limit=5&offset=2", ["eve"]), ("offset=9", [])):
        found = await anybody.get(f"/submissions/vectoradd/CPU?{query}")
        assert [each["user_name"] for each in found] == names


async def test_people_are_counted_and_each_one_s_ranked_runs(
    anybody: PopcornCli, three: list[Submission]
) -> None:
    ken = three[0].person
    for query, count in (("", 3), (f"?user_id={ken}", 2), ("?user_id=999", 0)):
        assert await anybody.get(f"/submission_count/vectoradd/CPU{query}") == {"count": count}


@pytest.mark.parametrize("route", ["submissions", "submission_count"])
async def test_what_is_not_there_is_said(
    place: Place, ada: PopcornCli, anybody: PopcornCli, route: str
) -> None:
    for path, words in (("nothing/CPU", "nothing"), ("vectoradd/H100", "H100")):
        answer = await anybody.asked("GET", f"/{route}/{path}")
        assert (answer.status_code, set(answer.json())) == (404, {"detail"})
        assert words in answer.json()["detail"]
    await place.store.boards.restrict(place.board.id, Access(Visibility.PRIVATE))
    assert (await anybody.asked("GET", f"/{route}/vectoradd/CPU")).status_code == 404
    assert (await ada.asked("GET", f"/{route}/vectoradd/CPU")).status_code == 200


@pytest.mark.parametrize("query", ["limit=-1", "offset=-1", "limit=x", f"limit={1 << 64}"])
async def test_a_page_that_cannot_be_is_refused(anybody: PopcornCli, query: str) -> None:
    answer = await anybody.asked("GET", f"/submissions/vectoradd/CPU?{query}")
    assert (answer.status_code, set(answer.json())) == (422, {"detail"})
