"""Tests of what is told while one waits: states, the end, and what a hang-up does."""

import asyncio
import base64
import io
import json
import zipfile
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from bot.domain.accounts import Caller
from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.domain.submission import Submission
from bot.web.compat.kernelbot import events as event_stream
from bot.web.compat.kernelbot.events import submission_events
from bot.web.context import WebContext
from runners.contract.evaluation import CaseKind, CaseStatus
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.agents import make_door
from tests.doubles.factories import make_case
from tests.doubles.place import Place
from tests.doubles.popcorn_cli import Json, PopcornCli, events

PROFILED = make_case(CaseKind.PROFILE, spec="size: 1024")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "POLL_S", 0.02)


async def followed(
    place: Place, who: PopcornCli, mode: str = "profile", **changes: object
) -> list[tuple[str, Json]]:
    """The events of a submission that is judged while somebody waits."""
    waiting = asyncio.create_task(who.posted(f"/VectorAdd/CPU/{mode}"))
    submission = await arrived(place)
    await place.judged(submission, **changes)
    answer = await waiting
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return events(answer.text)


async def arrived(place: Place) -> Submission:
    """The one submission, once it is there and was told of."""
    async with asyncio.timeout(5):
        while not (found := await place.store.submissions.to(place.board.id)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    return found[0]


async def test_a_profile_is_told_with_its_text_and_its_reports(
    place: Place, ada: PopcornCli
) -> None:
    files = (
        EvaluationFile.of("case-1.ncu-rep", b"one"),
        EvaluationFile.of("case-2.ncu-rep", b"two"),
    )
    first, *_, (name, end) = await followed(
        place, ada, cases=(PROFILED, PROFILED), log="torch: 3 us\n", files=files
    )
    assert first[0] == "status"
    assert first[1]["status"] == "processing"
    waits, _, stated = first[1]["message"].partition(". ")
    assert waits == "queued, position 1; no connected worker offers CPU"
    assert stated == place.board.access.source.statement(place.board.deadline)
    assert isinstance(first[1]["elapsed_time"], float)
    assert (name, end["status"]) == ("result", "success")
    assert "torch: 3 us" in end["reports"][0]
    (result,) = end["results"]
    assert result.keys() == {"success", "error", "system", "profile_metadata", "runs"}
    assert list(result["runs"]) == ["profile.0", "profile.1"]
    assert archived(result["runs"]["profile.0"]) == {
        "profile_data/ncu-details.txt": b"torch: 3 us",
        "profile_data/profile.ncu-rep": b"one",
    }
    assert archived(result["runs"]["profile.1"])["profile_data/profile.ncu-rep"] == b"two"
    run = result["runs"]["profile.0"]["run"]
    assert run.keys() == {
        "success",
        "passed",
        "command",
        "stdout",
        "stderr",
        "exit_code",
        "duration",
        "result",
    }
    # popcorn-cli reads the count as a number, and shows the report only then.
    assert run["result"]["benchmark-count"] == 1
    assert run["result"]["benchmark.0.spec"] == "size: 1024"
    assert base64.b64decode(run["result"]["benchmark.0.report"]) == b"torch: 3 us"


def archived(run: Json) -> dict[str, bytes]:
    """The files of a run's trace."""
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(run["profile"]["trace"]))) as found:
        return {name: found.read(name) for name in found.namelist()}


async def test_a_profile_without_a_gpu_has_its_text_all_the_same(
    place: Place, ada: PopcornCli
) -> None:
    *_, (_, end) = await followed(place, ada, cases=(PROFILED,), log="torch: 3 us\n")
    run = end["results"][0]["runs"]["profile.0"]
    assert run["profile"]["profiler"] == "torch.profiler"
    assert archived(run) == {"profile_data/ncu-details.txt": b"torch: 3 us"}


async def test_a_profile_that_could_not_be_built_says_why(place: Place, ada: PopcornCli) -> None:
    *_, (name, end) = await followed(
        place, ada, verdict=Verdict.BUILD_FAILED, stage=Stage.BUILD, message="line 3 is wrong"
    )
    assert name == "result"
    run = end["results"][0]["runs"]["profile.0"]["run"]
    assert (run["success"], run["passed"], run["exit_code"]) == (False, False, 1)
    assert "line 3 is wrong" in run["stderr"]
    assert "line 3 is wrong" in end["reports"][0]


@pytest.mark.parametrize(
    ("mode", "cases", "keys"),
    [
        ("test", (make_case(),), ["test"]),
        ("benchmark", (make_case(CaseKind.BENCHMARK),), ["benchmark"]),
        ("leaderboard", (make_case(), make_case(CaseKind.BENCHMARK)), ["test", "leaderboard"]),
    ],
)
async def test_an_older_command_line_follows_every_mode(
    place: Place, ada: PopcornCli, mode: str, cases: tuple[object, ...], keys: list[str]
) -> None:
    *_, (name, end) = await followed(place, ada, mode, cases=cases)
    assert name == "result"
    assert list(end["results"][0]["runs"]) == keys
    assert {run["run"]["result"]["check"] for run in end["results"][0]["runs"].values()} == {"pass"}


async def test_nothing_of_a_ranked_run_s_inputs_is_told(place: Place, ada: PopcornCli) -> None:
    failed = make_case(
        CaseKind.BENCHMARK,
        spec="size: hunter2",
        status=CaseStatus.FAILED,
        message="hunter2",
        measurement=None,
    )
    found = await followed(
        place,
        ada,
        "leaderboard",
        verdict=Verdict.WRONG_ANSWER,
        stage=Stage.TIMING,
        message="hunter2",
        log="hunter2",
        cases=(make_case(), failed),
        files=(EvaluationFile.of("inputs.txt", b"hunter2"),),
    )
    assert found[-1][0] == "result"
    assert "hunter2" not in json.dumps(found)
    run = found[-1][1]["results"][0]["runs"]["leaderboard"]["run"]
    assert run["result"] == {"check": "fail"}
    assert run["stdout"] == ""


async def test_a_log_cannot_end_its_fence_or_move_a_cursor(place: Place, ada: PopcornCli) -> None:
    *_, (_, end) = await followed(place, ada, "test", log="~~~~\n# I won \x1b[2J\n")
    (report,) = end["reports"]
    assert report.count("~~~~") % 2 == 0
    assert "\n~~~~\n# I won" not in report
    assert "\x1b" not in report


async def test_a_job_that_was_given_up_is_an_error(place: Place, ada: PopcornCli) -> None:
    waiting = asyncio.create_task(ada.posted("/vectoradd/CPU/profile"))
    await arrived(place)
    job = await place.claim()
    await place.store.jobs.release(job.id, job.fence, "the GPU is gone", final=True)
    *_, (name, body) = events((await waiting).text)
    assert (name, body["status"]) == ("error", "error")
    assert "internal error" in body["detail"]


async def test_silence_is_never_longer_than_a_beat(
    place: Place, ada: PopcornCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_S", 0.1)
    waiting = asyncio.create_task(ada.posted("/vectoradd/CPU/profile"))
    submission = await arrived(place)
    await asyncio.sleep(0.5)
    await place.judged(submission, cases=(PROFILED,))
    told_of = [body for name, body in events((await waiting).text) if name == "status"]
    assert 3 <= len(told_of) <= 8
    elapsed = [body["elapsed_time"] for body in told_of]
    assert elapsed == sorted(elapsed)


async def stream(
    place: Place, door: WebContext | None = None
) -> tuple[Submission, AsyncGenerator[bytes, None]]:
    """A submission of Ada's, and what is told of it through a door."""
    submission = await place.submit(mode=Mode.PROFILE)
    door = door or make_door(place.store, place.clock)
    return submission, submission_events(door, Caller(place.ada), submission)


async def test_who_hangs_up_has_the_submission_cancelled(place: Place) -> None:
    submission, stories = await stream(place)
    async with aclosing(stories) as story:
        assert (await anext(story)).startswith(b"event: status")
    (job,) = await place.jobs(submission)
    assert job.state is JobState.CANCELLED


async def test_a_door_that_closes_cancels_nothing_and_says_that_it_goes_on(place: Place) -> None:
    door = make_door(place.store, place.clock)
    door.closing.begun = True
    submission, story = await stream(place, door)
    ((name, body),) = events(b"".join([each async for each in story]).decode())
    assert (name, body["status_code"]) == ("error", 503)
    assert f"submission {submission.id} continues" in body["detail"]
    (job,) = await place.jobs(submission)
    assert job.state is JobState.QUEUED


async def test_who_is_cut_off_by_a_door_that_closes_has_not_hung_up(place: Place) -> None:
    door = make_door(place.store, place.clock)
    submission, stories = await stream(place, door)
    async with aclosing(stories) as story:
        await anext(story)
        door.closing.begun = True
    (job,) = await place.jobs(submission)
    assert job.state is JobState.QUEUED


async def test_a_database_that_is_away_for_a_moment_ends_no_stream(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission, story = await stream(place)
    works, left = place.store.jobs.of, [1, 1]

    async def of(number: SubmissionId) -> object:
        if left:
            left.pop()
            raise StoreError("away")
        return await works(number)

    monkeypatch.setattr("bot.services.status._RETRY_S", 0.01)
    monkeypatch.setattr(place.store.jobs, "of", of)
    assert (await anext(story)).startswith(b"event: status")
    await place.judged(submission, cases=(PROFILED,))
    assert b"event: result" in b"".join([each async for each in story])


async def test_a_board_that_is_deleted_meanwhile_ends_the_stream_with_words(place: Place) -> None:
    _, story = await stream(place)
    assert (await anext(story)).startswith(b"event: status")
    assert await place.store.boards.delete(place.board.id)
    ((name, body),) = events(b"".join([each async for each in story]).decode())
    assert (name, body["status_code"]) == ("error", 404)
