"""Tests of submitting a file, and of the submissions that popcorn-cli shows and deletes."""

import asyncio
from datetime import timedelta

import pytest

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.accounts import TokenScope
from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId
from bot.domain.submission import Submission
from bot.services.moderation import Decision, disqualify
from bot.web.compat.kernelbot import http
from runners.contract.evaluation import CaseKind, CaseStatus, Measurement, Progress
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.factories import make_case, make_evaluation, make_measurement
from tests.doubles.place import Place
from tests.doubles.popcorn_cli import (
    BOUNDARY,
    SOURCE,
    PopcornCli,
    completion_error,
    form,
    upload_headers,
)

NO_WORKER = "; no connected worker offers CPU"


async def judged(place: Place, number: int, **changes: object) -> None:
    submission = await place.store.submissions.get(SubmissionId(number))
    assert isinstance(submission, Submission)
    await place.judged(submission, **changes)


async def test_a_submission_is_polled_from_the_queue_to_its_end(
    place: Place, ada: PopcornCli
) -> None:
    number = await ada.submit()
    waiting = await ada.poll(number)
    assert waiting == {
        "id": number,
        "leaderboard_id": place.board.id,
        "leaderboard_name": "vectoradd",
        "file_name": "kernel.py",
        "user_id": str(place.ada),
        "submission_time": waiting["submission_time"],
        "done": False,
        "code": SOURCE.decode(),
        "runs": [],
        "job": {"status": f"queued, position 1{NO_WORKER}", "error": None, "last_heartbeat": None},
        "runner_queue": waiting["runner_queue"],
    }
    assert waiting["runner_queue"]["queued_jobs"] == 1

    await place.store.workers.announce("test", ("CPU",), timedelta(seconds=30))
    assert (await ada.poll(number))["job"]["status"] == "queued, position 1"
    job = await place.claim()
    assert (await ada.poll(number))["job"]["status"] == "starting"
    step = Progress(stage=Stage.TEST, done=1, total=2).model_dump(mode="json")
    assert await place.store.jobs.add_progress(job.id, job.fence, step.pop("stage"), step)
    moving = await ada.poll(number)
    assert (moving["job"]["status"], moving["done"]) == ("test 1/2", False)

    found = make_evaluation(mode=Mode.TEST, cases=(make_case(), make_case(spec="size: 17")))
    assert await place.store.jobs.accept(job.id, job.fence, found, None)
    ended = await ada.poll(number)
    assert (ended["done"], ended["job"]["status"], ended["job"]["error"]) == (
        True,
        "succeeded",
        None,
    )
    (run,) = ended["runs"]
    assert run["start_time"] <= run["end_time"]
    assert run | {"start_time": "", "end_time": ""} == {
        "start_time": "",
        "end_time": "",
        "mode": "test",
        "secret": False,
        "runner": "CPU",
        "score": None,
        "passed": True,
        "result": {
            "test-count": "2",
            "test.0.spec": "size: 16",
            "test.0.status": "pass",
            "test.1.spec": "size: 17",
            "test.1.status": "pass",
            "check": "pass",
        },
        "diagnostics": {
            "stdout": "",
            "stderr": "",
            "success": True,
            "exit_code": 0,
            "duration": found.wall_s,
        },
    }


async def test_a_ranked_run_satisfies_the_command_line_with_its_score(
    place: Place, ada: PopcornCli
) -> None:
    number = await ada.submit("leaderboard")
    timed = make_case(CaseKind.BENCHMARK, measurement=make_measurement(1234.5))
    await judged(place, number, cases=(make_case(), make_case(), timed))
    details = await ada.poll(number)
    told = [(run["mode"], run["secret"], run["score"], run["passed"]) for run in details["runs"]]
    assert told == [
        ("test", False, None, True),
        ("leaderboard", False, "0.0000012345", True),
        ("leaderboard", True, None, True),
    ]
    assert completion_error(details, "cpu") is None
    (entry,) = await ada.get("/user/submissions")
    assert entry["runs"] == [{"gpu_type": "CPU", "score": "0.0000012345"}]
    assert entry["done"] is True


async def test_a_wrong_ranked_run_ends_the_command_line_with_an_error(
    place: Place, ada: PopcornCli
) -> None:
    number = await ada.submit("leaderboard")
    await judged(
        place,
        number,
        verdict=Verdict.WRONG_ANSWER,
        stage=Stage.TIMING,
        cases=(
            make_case(),
            make_case(CaseKind.BENCHMARK, status=CaseStatus.FAILED, measurement=None),
        ),
    )
    details = await ada.poll(number)
    assert details["job"]["status"] == "failed"
    assert completion_error(details, "CPU") is not None
    assert [run["passed"] for run in details["runs"]] == [True, False, False]
    assert (await ada.get("/user/submissions"))[0]["runs"] == [{"gpu_type": "CPU", "score": None}]


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        (Verdict.WRONG_ANSWER, "failed"),
        (Verdict.BUILD_FAILED, "failed"),
        (Verdict.TIMED_OUT, "timed_out"),
        (Verdict.TIMING_REJECTED, "failed"),
        (Verdict.TASK_ERROR, "failed"),
    ],
)
async def test_a_verdict_that_is_a_fail_is_told_with_its_message_and_log(
    place: Place, ada: PopcornCli, verdict: Verdict, word: str
) -> None:
    number = await ada.submit()
    await judged(
        place,
        number,
        verdict=verdict,
        message="line 3 is wrong",
        log="compiling \x1b[31mred\n",
    )
    job = (await ada.poll(number))["job"]
    assert job["status"] == word
    assert "line 3 is wrong" in job["error"]
    assert "compiling red" in job["error"]
    assert "\x1b" not in job["error"]


async def test_the_times_of_a_benchmark_are_told_in_nanoseconds(
    place: Place, ada: PopcornCli
) -> None:
    number = await ada.submit("benchmark")
    measured = timed_by(((900.0, 1000.0), (1100.0,)))
    timed = make_case(CaseKind.BENCHMARK, measurement=measured)
    await judged(place, number, cases=(timed,))
    (run,) = (await ada.poll(number))["runs"]
    assert run["mode"] == "benchmark"
    assert run["result"] == {
        "benchmark-count": "1",
        "benchmark.0.spec": "size: 1024",
        "benchmark.0.status": "pass",
        "benchmark.0.runs": "3",
        "benchmark.0.mean": "1000.0",
        "benchmark.0.err": "1.0",
        "benchmark.0.std": "100.0",
        "benchmark.0.best": "900.0",
        "benchmark.0.worst": "1100.0",
        "check": "pass",
    }


def timed_by(samples: tuple[tuple[float, ...], ...]) -> Measurement:
    return make_measurement().model_copy(update={"samples": samples})


async def test_times_whose_samples_nobody_knows_have_no_best_one(
    place: Place, ada: PopcornCli
) -> None:
    number = await ada.submit("benchmark")
    timed = make_case(CaseKind.BENCHMARK, measurement=timed_by(()))
    await judged(place, number, cases=(timed,))
    result = (await ada.poll(number))["runs"][0]["result"]
    assert result["benchmark.0.mean"] == "1000.0"
    assert not {"benchmark.0.best", "benchmark.0.worst", "benchmark.0.std"} & set(result)


async def test_a_failed_test_is_told_on_one_line_and_a_skipped_one_not(
    place: Place, ada: PopcornCli
) -> None:
    number = await ada.submit()
    cases = (
        make_case(status=CaseStatus.FAILED, message="first\nsecond"),
        make_case(status=CaseStatus.SKIPPED),
    )
    await judged(place, number, verdict=Verdict.WRONG_ANSWER, cases=cases)
    result = (await ada.poll(number))["runs"][0]["result"]
    assert result["test.0.status"] == "fail"
    assert result["test.0.error"] == "first\\nsecond"
    assert "test.1.status" not in result
    assert result["check"] == "fail"


async def test_a_disqualified_submission_is_what_kernelbot_calls_hacked(
    place: Place, ada: PopcornCli
) -> None:
    number = await ada.submit("leaderboard")
    await judged(place, number)
    await disqualify(place.store, Decision(place.ada, "it reads the clock"), SubmissionId(number))
    job = (await ada.poll(number))["job"]
    assert job["status"] == "hacked"
    assert "it reads the clock" in job["error"]


async def test_a_job_that_was_given_up_is_our_fault(place: Place, ada: PopcornCli) -> None:
    number = await ada.submit()
    job = await place.claim()
    assert await place.store.jobs.release(job.id, job.fence, "the GPU is gone", final=True)
    found = await ada.poll(number)
    assert (found["done"], found["job"]["status"], found["runs"]) == (True, "failed", [])
    assert "not at fault" in found["job"]["error"]


async def test_a_database_that_is_away_for_a_moment_is_not_noticed_by_a_poll(
    place: Place, ada: PopcornCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await ada.submit()
    monkeypatch.setattr(http, "RETRY_S", 0.01)
    for port, name in (("tokens", "find"), ("jobs", "of"), ("results", "evaluations")):
        fails_twice(monkeypatch, getattr(place.store, port), name)
    assert (await ada.poll(number))["id"] == number
    assert (await ada.get("/user/submissions"))[0]["id"] == number


def fails_twice(monkeypatch: pytest.MonkeyPatch, port: object, name: str) -> None:
    works, left = getattr(port, name), [1, 1]

    async def call(*arguments: object) -> object:
        if left:
            left.pop()
            raise StoreError("away")
        return await works(*arguments)

    monkeypatch.setattr(port, name, call)


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_database_that_stays_away_ends_a_poll_before_the_command_line_gives_up(
    place: Place, ada: PopcornCli, monkeypatch: pytest.MonkeyPatch, *, hangs: bool
) -> None:
    number = await ada.submit()
    monkeypatch.setattr(http, "RETRY_S", 0.01)
    monkeypatch.setattr(http, "PATIENCE_S", 0.05)

    async def away(*_: object) -> None:
        if hangs:
            await asyncio.sleep(60)
        raise StoreError("password=hunter2")

    monkeypatch.setattr(place.store.jobs, "of", away)
    answer = await ada.asked("GET", f"/user/submissions/{number}")
    assert (answer.status_code, set(answer.json())) == (503, {"detail"})
    assert "hunter2" not in answer.text


async def test_the_list_is_the_newest_first_in_pages_of_one_board(ada: PopcornCli) -> None:
    made = [await ada.submit() for _ in range(3)]
    listed = [each["id"] for each in await ada.get("/user/submissions?leaderboard=VectorAdd")]
    assert listed == made[::-1]
    page = await ada.get("/user/submissions?limit=1&offset=1")
    assert [each["id"] for each in page] == [made[1]]
    assert page[0].keys() == {
        "id",
        "leaderboard_name",
        "file_name",
        "submission_time",
        "done",
        "runs",
    }
    answer = await ada.asked("GET", "/user/submissions?leaderboard=nothing")
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=0", 400),
        ("limit=101", 400),
        ("offset=-1", 400),
        ("offset=1001", 400),
        ("limit=x", 422),
    ],
)
async def test_a_page_that_cannot_be_is_refused(ada: PopcornCli, query: str, status: int) -> None:
    answer = await ada.asked("GET", f"/user/submissions?{query}")
    assert (answer.status_code, set(answer.json())) == (status, {"detail"})


async def test_a_test_that_failed_says_how_its_process_ended(place: Place, ada: PopcornCli) -> None:
    number = await ada.submit()
    failed = make_case(status=CaseStatus.FAILED, message="0 is not 1", measurement=None)
    await judged(
        place,
        number,
        verdict=Verdict.WRONG_ANSWER,
        stage=Stage.TEST,
        message="0 is not 1",
        log="hello\n",
        cases=(failed,),
    )
    (run,) = (await ada.poll(number))["runs"]
    told = run["diagnostics"]
    assert told.keys() == {"stdout", "stderr", "success", "exit_code", "duration"}
    assert (told["stdout"], told["success"], told["exit_code"]) == ("hello", True, 112)
    assert "0 is not 1" in told["stderr"]


async def test_a_build_that_failed_says_so_as_a_compilation(place: Place, ada: PopcornCli) -> None:
    number = await ada.submit("benchmark")
    await judged(
        place,
        number,
        verdict=Verdict.BUILD_FAILED,
        stage=Stage.BUILD,
        message="line 3 is wrong",
        log="nvcc: a warning\n",
        cases=(),
    )
    (run,) = (await ada.poll(number))["runs"]
    told = run["diagnostics"]
    assert (told["success"], told["exit_code"]) == (False, 1)
    built = told["compilation"]
    assert (built["success"], built["exit_code"], built["stdout"]) == (False, 1, "nvcc: a warning")
    assert "line 3 is wrong" in built["stderr"]


async def test_only_public_tests_and_benchmarks_have_diagnostics(
    place: Place, ada: PopcornCli
) -> None:
    number = await ada.submit("leaderboard")
    timed = make_case(CaseKind.BENCHMARK, measurement=make_measurement(1234.5))
    await judged(place, number, cases=(make_case(), timed), log="hunter2")
    details = await ada.poll(number)
    assert [run["mode"] for run in details["runs"] if "diagnostics" in run] == ["test"]
    assert "hunter2" not in str(details["runs"])


@pytest.mark.parametrize("number", ["0", "-1", "x", str(1 << 63)])
async def test_a_number_that_cannot_be_is_refused(ada: PopcornCli, number: str) -> None:
    for method in ("GET", "DELETE"):
        answer = await ada.asked(method, f"/user/submissions/{number}")
        assert (answer.status_code, set(answer.json())) == (422, {"detail"})


async def test_deleting_stops_a_submission_and_takes_it_off_its_board(
    place: Place, ada: PopcornCli
) -> None:
    number = await ada.submit("leaderboard")
    for _ in range(2):
        answer = await ada.asked("DELETE", f"/user/submissions/{number}")
        assert (answer.status_code, answer.json()) == (
            200,
            {"status": "ok", "submission_id": number},
        )
    found = await ada.poll(number)
    assert (found["done"], found["job"]["status"]) == (True, "withdrawn")
    assert await place.store.moderation.exclusion_of(SubmissionId(number)) is not None


async def test_nobody_deletes_another_s(ada: PopcornCli, eve: PopcornCli, place: Place) -> None:
    number = await ada.submit("leaderboard")
    answer = await eve.asked("DELETE", f"/user/submissions/{number}")
    assert answer.status_code == 403
    assert await place.store.moderation.exclusion_of(SubmissionId(number)) is None
    assert not (await ada.poll(number))["done"]


PATH = "/submission/vectoradd/CPU/test"


@pytest.mark.parametrize(
    ("word", "mode"),
    [
        ("test", Mode.TEST),
        ("benchmark", Mode.BENCHMARK),
        ("leaderboard", Mode.RANKED),
        ("Profile", Mode.PROFILE),
    ],
)
async def test_a_file_is_taken_with_its_ids(
    place: Place, ada: PopcornCli, word: str, mode: Mode
) -> None:
    answer = await ada.posted(f"/submission/VectorAdd/cpu/{word}")
    assert answer.status_code == 202
    number = answer.json()["details"]["id"]
    assert answer.json() == {
        "details": {"id": number, "job_status_id": number},
        "runner_queue": {
            "runner": "Podium",
            "gpu": "CPU",
            "queued_jobs": 1,
            "running_jobs": 0,
            "available_runners": 0,
            "status": "unavailable",
            "error": None,
        },
        "status": "accepted",
    }
    stored = await place.store.submissions.get(SubmissionId(number))
    assert stored is not None
    assert (stored.person, stored.mode, stored.gpus) == (place.ada, mode, ("CPU",))
    assert stored.file_name == "kernel.py"
    assert await place.store.submissions.source(stored.id) == SOURCE.decode()


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('filename="kern\\"el.py"', 'kern"el.py'),
        ('filename="kërnel.py"', "kërnel.py"),
        ('filename="../../etc/passwd.py"', "passwd.py"),
    ],
)
async def test_a_file_s_name_is_read_as_reqwest_writes_it(
    ada: PopcornCli, disposition: str, name: str
) -> None:
    answer = await ada.posted(PATH, form(disposition=disposition))
    assert answer.status_code == 202, answer.text
    assert (await ada.poll(answer.json()["details"]["id"]))["file_name"] == name


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/submission/vectorad/CPU/test", 404, "did you mean vectoradd?"),
        ("/submission/vectoradd/H100/test", 404, "the board runs on CPU, not on 'H100'"),
        ("/submission/vectoradd/CPU/ranked", 400, "test, benchmark, profile, leaderboard"),
        ("/vectoradd/CPU/nothing", 400, "test, benchmark, profile, leaderboard"),
    ],
)
async def test_a_wrong_name_is_refused_with_the_right_ones(
    ada: PopcornCli, path: str, status: int, words: str
) -> None:
    answer = await ada.posted(path)
    assert answer.status_code == status
    assert set(answer.json()) == {"detail"}
    assert words in answer.json()["detail"]
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\xff", "not UTF-8"),
        ("x = 1\n".encode("utf-16"), "the file is UTF-16"),
        (b"PK\x03\x04\0\0", "NUL bytes"),
        (b"#" * (MAX_SOURCE_BYTES + 1), "at most 1,000,000"),
        (b"#" * (3 * MAX_SOURCE_BYTES), "at most 1,000,000"),
        (b"#" * (5 * MAX_SOURCE_BYTES), "at most 1,000,000"),
        (b"#!POPCORN leaderboard another\nx = 1\n", "header says 'another'"),
    ],
)
async def test_a_file_that_is_no_source_is_refused(
    ada: PopcornCli, content: bytes, words: str
) -> None:
    answer = await ada.posted(PATH, form(content))
    assert 400 <= answer.status_code < 500
    assert words in answer.json()["detail"]
    assert await ada.get("/user/submissions") == []


async def test_a_file_of_just_the_most_bytes_is_taken(ada: PopcornCli) -> None:
    content = b"x = 1\n" + b"#" * (MAX_SOURCE_BYTES - 6)
    assert (await ada.posted(PATH, form(content))).status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        form()[:60],
        form()[:-40],
        form(disposition=""),
        form().replace(b'name="file"', b'name="other"'),
        form().replace(b'name="file"; ', b""),
        b"".join(form()[:-72] + b"\r\n" for _ in range(3)) + form(),
    ],
)
async def test_a_form_that_is_none_is_refused(ada: PopcornCli, body: bytes) -> None:
    answer = await ada.posted(PATH, body)
    assert answer.status_code == 400, answer.text
    assert set(answer.json()) == {"detail"}


@pytest.mark.parametrize("kind", ["", "text/plain", "multipart/form-data", "application/json"])
async def test_a_body_of_another_kind_is_refused(ada: PopcornCli, kind: str) -> None:
    assert ada.token is not None
    headers = [("x-popcorn-cli-id", ada.token), ("content-type", kind)]
    answer = await ada.asked("POST", PATH, form(), headers)
    assert answer.status_code == 400
    assert "multipart/form-data" in answer.json()["detail"]


async def test_without_a_token_nobody_submits(anybody: PopcornCli, place: Place) -> None:
    for path in (PATH, "/vectoradd/CPU/profile"):
        answer = await anybody.posted(path)
        assert answer.status_code == 400
        assert "~/.popcorn.yaml" in answer.json()["detail"]
    assert await place.store.submissions.to(place.board.id) == ()


@pytest.mark.parametrize("token", ["nonsense", "x" * 5000])
async def test_a_token_that_is_none_is_refused(place: Place, token: str) -> None:
    answer = await PopcornCli.with_token(place, token).posted(PATH)
    assert answer.status_code == 401
    assert "~/.popcorn.yaml" in answer.json()["detail"]
    assert token not in answer.text


async def test_a_token_that_only_reads_submits_nothing(place: Place) -> None:
    reader = await PopcornCli.of(place, scope=TokenScope.READ)
    answer = await reader.posted(PATH)
    assert 400 <= answer.status_code < 500
    assert "is read-only" in answer.json()["detail"]
    assert await reader.get("/user/submissions") == []


async def test_a_queue_that_cannot_be_read_costs_nobody_the_id(
    ada: PopcornCli, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise StoreError("away")

    monkeypatch.setattr(place.store.workers, "alive", away)
    answer = await ada.posted(PATH)
    assert answer.status_code == 202
    assert answer.json()["runner_queue"] is None


async def test_a_database_that_is_away_is_said_with_when_to_come_again(
    ada: PopcornCli, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreError("password=hunter2")

    monkeypatch.setattr(place.store.submissions, "add", away)
    answer = await ada.posted(PATH)
    assert (answer.status_code, set(answer.json())) == (503, {"detail"})
    assert answer.headers["retry-after"]
    assert "hunter2" not in answer.text


async def test_the_boundary_may_come_in_quotes(ada: PopcornCli) -> None:
    (_, *rest) = upload_headers(ada.token, len(form()))
    quoted = ("content-type", f'multipart/form-data; boundary="{BOUNDARY}"')
    assert (await ada.asked("POST", PATH, form(), [quoted, *rest])).status_code == 202
