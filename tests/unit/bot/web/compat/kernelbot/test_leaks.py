"""Tests of what must never be told: files, seeds, hidden boards, others' sources, secret inputs."""

from datetime import timedelta

import pytest

from bot.domain.board import Access, SourceVisibility, Visibility
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.domain.publication import PublishRequest
from bot.services.publishing.publish import publish
from runners.contract.evaluation import CaseKind, CaseStatus
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode, Workload
from runners.contract.verdict import Stage, Verdict
from tests.doubles.agents import make_token
from tests.doubles.factories import make_case, make_task
from tests.doubles.place import Place
from tests.doubles.popcorn_cli import PopcornCli

SECRET = "hunter2"  # noqa: S105 - what must not be told
NUMBER = 424242
PRIVATE = Access(Visibility.PRIVATE)


@pytest.fixture
async def hidden(place: Place) -> None:
    """From here on the board is there for its creator alone."""
    await place.store.boards.restrict(place.board.id, PRIVATE)


async def publish_task(place: Place, **changes: object) -> None:
    task = make_task(name="secretive", **changes)
    await publish(place.store, place.clock, PublishRequest(place.ada), task)


async def test_the_files_of_a_task_are_not_told(place: Place, anybody: PopcornCli) -> None:
    await publish_task(place, files={"reference.py": SECRET, "eval.py": SECRET})
    answer = await anybody.asked("GET", "/leaderboards")
    assert "secretive" in answer.text
    assert SECRET not in answer.text
    assert "reference.py" not in answer.text


async def test_the_seed_of_a_task_is_not_told(place: Place, ada: PopcornCli) -> None:
    await publish_task(place, seed=NUMBER)
    answer = await ada.asked("GET", "/leaderboards")
    assert str(NUMBER) not in answer.text
    assert {each["secret_seed"] for each in answer.json()} == {None}


async def test_the_seeds_of_its_cases_are_not_told(place: Place, ada: PopcornCli) -> None:
    await publish_task(
        place,
        tests=(Workload(args={"size": 4, "seed": NUMBER}),),
        benchmarks=(Workload(args={"size": 5, "seed": NUMBER}),),
    )
    answer = await ada.asked("GET", "/leaderboards")
    assert str(NUMBER) not in answer.text
    (board,) = (each for each in answer.json() if each["name"] == "secretive")
    assert (board["task"]["tests"], board["task"]["benchmarks"]) == ([{"size": 4}], [{"size": 5}])


@pytest.mark.usefixtures("hidden")
async def test_a_private_board_is_not_in_the_list(
    ada: PopcornCli, eve: PopcornCli, anybody: PopcornCli
) -> None:
    assert await anybody.get("/leaderboards") == []
    assert await eve.get("/leaderboards") == []
    assert [each["name"] for each in await ada.get("/leaderboards")] == ["vectoradd"]


@pytest.mark.usefixtures("hidden")
async def test_who_is_invited_sees_a_private_board(place: Place, eve: PopcornCli) -> None:
    await place.store.boards.invite(place.board.id, frozenset({"local:eve"}))
    assert [each["name"] for each in await eve.get("/leaderboards")] == ["vectoradd"]
    assert await eve.get("/gpus/vectoradd") == ["CPU"]


@pytest.mark.usefixtures("hidden")
@pytest.mark.parametrize("token", [True, False])
async def test_the_gpus_of_a_private_board_are_those_of_none(
    eve: PopcornCli, anybody: PopcornCli, *, token: bool
) -> None:
    who = eve if token else anybody
    there, nowhere = [await who.asked("GET", f"/gpus/{name}") for name in ("vectoradd", "nothing")]
    assert there.status_code == nowhere.status_code == 404
    assert there.text.replace("vectoradd", "nothing") == nowhere.text


@pytest.mark.usefixtures("hidden")
@pytest.mark.parametrize("path", ["/submission/{}/CPU/test", "/{}/CPU/profile"])
async def test_submitting_to_a_private_board_is_as_to_none(eve: PopcornCli, path: str) -> None:
    there, nowhere = [await eve.posted(path.format(name)) for name in ("vectoradd", "nothing")]
    assert there.status_code == nowhere.status_code == 404
    assert there.text.replace("vectoradd", "nothing") == nowhere.text


@pytest.mark.usefixtures("hidden")
async def test_the_own_list_of_a_private_board_is_that_of_none(eve: PopcornCli) -> None:
    paths = [f"/user/submissions?leaderboard={name}" for name in ("vectoradd", "nothing")]
    there, nowhere = [await eve.asked("GET", path) for path in paths]
    assert there.status_code == nowhere.status_code == 404
    assert there.text.replace("vectoradd", "nothing") == nowhere.text


async def test_another_s_source_is_not_told(place: Place, ada: PopcornCli, eve: PopcornCli) -> None:
    open_access = Access(source=SourceVisibility.ALWAYS)
    number = await ada.submit()
    for access in (Access(), open_access):
        await place.store.boards.restrict(place.board.id, access)
        answer = await eve.asked("GET", f"/user/submissions/{number}")
        assert answer.status_code == 403
        assert "custom_kernel" not in answer.text
        assert "kernel.py" not in answer.text


async def test_another_s_submission_to_a_private_board_is_none(
    place: Place, ada: PopcornCli, eve: PopcornCli
) -> None:
    number = await ada.submit()
    await place.store.boards.restrict(place.board.id, PRIVATE)
    for method in ("GET", "DELETE"):
        there = await eve.asked(method, f"/user/submissions/{number}")
        nowhere = await eve.asked(method, "/user/submissions/999")
        assert there.status_code == nowhere.status_code == 404
        assert there.text.replace(str(number), "999") == nowhere.text


async def test_a_list_has_nobody_else_s(ada: PopcornCli, eve: PopcornCli) -> None:
    number = await ada.submit()
    assert await eve.get("/user/submissions") == []
    assert [each["id"] for each in await ada.get("/user/submissions")] == [number]


@pytest.mark.parametrize("token", [None, "x"])
async def test_without_a_token_no_submission_is_told(
    place: Place, ada: PopcornCli, token: str | None
) -> None:
    number = await ada.submit()
    who = PopcornCli.with_token(place, token)
    for path in ("/user/submissions", f"/user/submissions/{number}"):
        answer = await who.asked("GET", path)
        assert answer.status_code in {400, 401}
        assert "vectoradd" not in answer.text


async def test_a_worker_s_token_is_nobody_s(place: Place) -> None:
    who = PopcornCli.with_token(place, await make_token(place.store, place.clock))
    assert (await who.asked("GET", "/user/submissions")).status_code == 401
    assert (await who.posted("/submission/vectoradd/CPU/test")).status_code == 401


SECRET_RUNS = [
    {"verdict": Verdict.PASSED, "cases": (make_case(), make_case(CaseKind.BENCHMARK))},
    {
        "verdict": Verdict.WRONG_ANSWER,
        "stage": Stage.TIMING,
        "message": f"element 0 is {SECRET}",
        "cases": (
            make_case(),
            make_case(
                CaseKind.BENCHMARK,
                spec=f"size: {SECRET}",
                status=CaseStatus.FAILED,
                message=SECRET,
                measurement=None,
            ),
        ),
    },
    {"verdict": Verdict.CRASHED, "stage": Stage.TIMING, "message": SECRET},
    {"verdict": Verdict.CRASHED, "stage": Stage.PREPARE, "message": SECRET},
]


@pytest.mark.parametrize("changes", SECRET_RUNS)
async def test_what_a_ranked_run_printed_of_its_inputs_is_not_told_to_a_poll(
    place: Place, ada: PopcornCli, changes: dict[str, object]
) -> None:
    number = await ada.submit("leaderboard")
    stored = await place.store.submissions.get(SubmissionId(number))
    assert stored is not None
    files = (EvaluationFile.of("inputs.txt", SECRET.encode()),)
    await place.judged(stored, log=f"inputs: {SECRET}", files=files, **changes)
    answer = await ada.asked("GET", f"/user/submissions/{number}")
    assert answer.json()["done"] is True
    assert SECRET not in answer.text
    assert all("result" not in run for run in answer.json()["runs"] if run["mode"] != "test")
    assert SECRET not in (await ada.asked("GET", "/user/submissions")).text


async def test_a_poll_does_not_tell_the_error_of_another_s_job(
    place: Place, ada: PopcornCli, eve: PopcornCli
) -> None:
    number = await ada.submit()
    job = await place.claim()
    assert await place.store.jobs.release(job.id, job.fence, SECRET, final=True)
    assert (await place.store.jobs.of(SubmissionId(number)))[0].state is JobState.FAILED
    assert SECRET not in (await eve.asked("GET", f"/user/submissions/{number}")).text


async def test_what_the_house_has_judged_is_no_submission(ada: PopcornCli) -> None:
    assert (await ada.asked("GET", "/user/submissions/-1")).status_code == 422


async def test_a_board_that_was_hidden_since_leaves_one_s_own_to_oneself(
    place: Place, ada: PopcornCli, eve: PopcornCli
) -> None:
    number = await eve.submit()
    await place.store.boards.restrict(place.board.id, PRIVATE)
    assert [each["id"] for each in await eve.get("/user/submissions")] == [number]
    assert (await eve.poll(number))["code"]
    assert (await eve.posted("/submission/vectoradd/CPU/test")).status_code == 404


async def test_a_closed_board_takes_nothing(place: Place, ada: PopcornCli) -> None:
    deadline = place.clock.now() + timedelta(hours=1)
    await place.store.boards.configure(place.board.id, place.board.gpus, deadline)
    assert (await ada.posted("/submission/vectoradd/CPU/test")).status_code == 202
    place.clock.advance(3601)
    answer = await ada.posted("/submission/vectoradd/CPU/test")
    assert 400 <= answer.status_code < 500
    assert "closed at" in answer.json()["detail"]


async def test_an_answer_may_be_kept_by_nobody_on_the_way(ada: PopcornCli) -> None:
    number = await ada.submit(Mode.TEST.value)
    for path in ("/leaderboards", f"/user/submissions/{number}", "/user/submissions/999"):
        assert (await ada.asked("GET", path)).headers["cache-control"] == "no-store"
