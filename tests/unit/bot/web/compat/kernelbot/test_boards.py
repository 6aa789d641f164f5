"""Tests of the boards and queues that popcorn-cli shows, of signing in, and of ranked lists."""

import json
from datetime import timedelta

import pytest

from bot.domain.board import Access, Viewer, Visibility
from bot.domain.submission import Submission
from bot.services.invites import create_invite_link
from bot.services.moderation import Decision, pause_gpu
from runners.contract.evaluation import CPU, CaseKind
from runners.contract.task import Mode, Workload
from tests.doubles.factories import make_case, make_measurement, make_task
from tests.doubles.place import Place
from tests.doubles.popcorn_cli import PopcornCli


async def test_a_board_has_what_the_command_line_needs(place: Place, anybody: PopcornCli) -> None:
    (board,) = await anybody.get("/leaderboards")
    assert board == {
        "id": place.board.id,
        "name": "vectoradd",
        "deadline": None,
        "task": {
            "lang": "py",
            "files": {},
            "config": {},
            "libraries": [],
            "tests": [{"size": 16}, {"size": 17}],
            "test_timeout": 180,
            "benchmarks": [{"size": 1024}],
            "benchmark_timeout": 180,
            "ranked_timeout": 180,
            "ranking_by": "last",
            "seed": None,
            "multi_gpu": False,
        },
        "gpu_types": ["CPU"],
        "creator_id": place.ada,
        "forum_id": -1,
        "description": "Add two vectors.",
        "secret_seed": None,
        "visibility": "public",
    }


async def test_a_description_cannot_move_a_cursor(place: Place, anybody: PopcornCli) -> None:
    task = make_task(description="Add \x1b[2Jtwo", tests=(Workload(args={"sizes": (1, 2)}),))
    await place.store.boards.add_version(place.board.id, task, "another")
    (board,) = await anybody.get("/leaderboards")
    assert board["description"] == "Add two"
    assert board["task"]["tests"] == [{"sizes": [1, 2]}]


async def test_a_deadline_is_told_with_its_zone(place: Place, anybody: PopcornCli) -> None:
    deadline = place.clock.now() + timedelta(hours=1)
    await place.store.boards.configure(place.board.id, ("CPU", "H100"), deadline)
    (board,) = await anybody.get("/leaderboards")
    assert board["deadline"] == deadline.isoformat()
    assert await anybody.get("/gpus/VectorAdd") == ["CPU", "H100"]


async def test_a_token_that_is_none_is_told_rather_than_passed_over(place: Place) -> None:
    answer = await PopcornCli.with_token(place, "nonsense").asked("GET", "/leaderboards")
    assert answer.status_code == 401
    assert "~/.popcorn.yaml" in answer.json()["detail"]


async def test_a_queue_is_told_with_who_works_and_why_it_stands_still(
    place: Place, ada: PopcornCli, anybody: PopcornCli
) -> None:
    await place.store.workers.announce("box", [CPU], timedelta(seconds=30))
    await ada.submit()
    assert await anybody.get("/runner_queue/CPU") == {
        "runner": "Podium",
        "gpu": "CPU",
        "queued_jobs": 1,
        "running_jobs": 0,
        "available_runners": 1,
        "status": "available",
        "error": None,
    }
    await place.claim()
    await pause_gpu(place.store, Decision(place.ada, "a new driver"), "CPU")
    queue = await anybody.get("/runner_queue/CPU")
    assert (queue["queued_jobs"], queue["running_jobs"]) == (0, 1)
    assert (queue["status"], queue["error"]) == ("unavailable", "a new driver")


async def test_the_door_says_that_it_is_there(anybody: PopcornCli) -> None:
    assert await anybody.get("/health") == {"status": "ok"}


@pytest.mark.parametrize("provider", ["discord", "github"])
async def test_registering_says_how_to_get_a_token_and_keeps_what_is_written(
    anybody: PopcornCli, provider: str
) -> None:
    answers = [await anybody.asked("GET", f"/auth/init?provider={provider}") for _ in range(2)]
    for answer in answers:
        # With a success the command line would write the state over a token that works.
        assert answer.status_code == 501
        assert "~/.popcorn.yaml" in answer.json()["detail"]
        assert answer.json()["state"]
    assert answers[0].json()["state"] != answers[1].json()["state"]


async def test_an_invite_code_invites_to_its_board(
    place: Place, eve: PopcornCli, anybody: PopcornCli
) -> None:
    creator = Viewer(place.board.creator)
    _, code = await create_invite_link(
        place.store, place.clock, creator, place.board.name, days=1, most=1
    )
    asked = json.dumps({"code": code}).encode()
    assert (await anybody.asked("POST", "/user/join", asked)).status_code == 400
    answer = await eve.asked("POST", "/user/join", asked)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"status": "ok", "leaderboards": [place.board.name]}
    for wrong in (b'{"code": "x"}', b"{}", b"[]", b'{"code": 7}', b"x" * 9000):
        assert (await eve.asked("POST", "/user/join", wrong)).status_code in {400, 413, 422}
    board = await place.store.boards.get(place.board.id)
    assert board is not None
    assert "local:eve" in board.access.guests


@pytest.mark.parametrize("provider", ["discord", "github"])
async def test_the_end_of_another_server_s_sign_in_says_the_same(
    anybody: PopcornCli, provider: str
) -> None:
    answer = await anybody.asked("GET", f"/auth/cli/{provider}?code=x&state=y")
    assert answer.status_code == 501
    assert "~/.popcorn.yaml" in answer.json()["detail"]


async def test_a_gpu_type_that_no_board_has_is_unknown_and_no_error(anybody: PopcornCli) -> None:
    assert await anybody.get("/runner_queue/T9") == {
        "runner": "unknown",
        "gpu": "T9",
        "queued_jobs": None,
        "running_jobs": None,
        "available_runners": None,
        "status": "unavailable",
        "error": "unknown gpu",
    }


@pytest.mark.parametrize(
    "path", ["/nothing", "/", "/user", "/submission/vectoradd", "//leaderboards", "/a/b/c/d"]
)
async def test_a_path_that_is_none_has_a_detail_and_nothing_else(
    anybody: PopcornCli, path: str
) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = await anybody.asked(method, path)
        assert (answer.status_code, set(answer.json())) == (404, {"detail"})


async def test_a_slash_too_many_says_where_it_comes_from(anybody: PopcornCli) -> None:
    answer = await anybody.asked("GET", "//leaderboards")
    assert "remove the / at the end of POPCORN_API_URL" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/leaderboards", {"GET", "HEAD"}),
        ("POST", "/runner_queue/CPU", {"GET"}),
        ("PUT", "/user/submissions/5", {"GET", "DELETE"}),
        ("GET", "/vectoradd/CPU/profile", {"POST"}),
        ("GET", "/user/join", {"POST"}),
        ("OPTIONS", "/health", {"GET"}),
        ("PATCH", "/admin/anything", {"DELETE", "GET", "POST", "PUT"}),
    ],
)
async def test_another_method_has_a_detail_and_the_methods_that_there_are(
    anybody: PopcornCli, method: str, path: str, allowed: set[str]
) -> None:
    answer = await anybody.asked(method, path)
    assert (answer.status_code, set(answer.json())) == (405, {"detail"})
    assert allowed <= set(answer.headers["allow"].split(", "))
    for one in answer.headers["allow"].split(", "):
        assert (await anybody.asked(one, path)).status_code != 405


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
