"""The `podium` command as real processes: its output, its exit codes, its one data folder."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.kernelbot import DOUBLES, PLAIN_EVAL
from tests.e2e.command import IDENTITY, Podium, fresh, refusal, terminate
from tests.e2e.command import served as running

RIGHT = "# fake: time_us=30\ndef custom_kernel(data): ...\n"
WRONG = "# fake: verdict=wrong_answer\ndef custom_kernel(data): ...\n"
JUDGE_KEYS = [
    "verdict", "mode", "task", "score_ns", "too_noisy", "cases", "compiled", "environment",
    "isolation", "wall_s",
]  # fmt: skip
CASE_KEYS = [
    "spec", "kind", "status", "message", "time_ns", "half_width_ns", "bound_ns",
    "resolution_ns", "claimed_ns", "rounds", "samples", "left_out", "vs_reference",
    "vs_reference_low", "vs_reference_high",
]  # fmt: skip


@pytest.fixture
def podium() -> Iterator[Podium]:
    with fresh() as podium:
        yield podium


@pytest.fixture
def served(podium: Podium) -> Iterator[Podium]:
    with running(podium):
        yield podium


@pytest.mark.slow
def test_the_main_job_through_a_running_podium(served: Podium) -> None:
    published = served("task", "publish", IDENTITY, "--unchecked")
    assert published.returncode == 0
    assert published.stdout.splitlines() == [
        "identity: Podium's judge grades: the task has no evaluation program of its own.",
        "identity on CPU: created, task version 1, no deadline",
    ]
    right = served("submit", served.file("r.py", RIGHT), "--leaderboard", "identity", "--as", "ada")
    assert right.returncode == 0, right.stderr
    assert "30.00 µs" in right.stdout
    assert "#1: CPU: 1st of 1, 30.00 µs" in right.stderr
    assert "`podium up` is not running" not in right.stderr
    wrong = served(
        "submit", served.file("w.py", WRONG), "--leaderboard", "identity", "--as", "ken", "--json"
    )
    assert wrong.returncode == 1
    assert json.loads(wrong.stdout)["jobs"][0]["verdict"] == "wrong_answer"
    [board] = json.loads(served("show", "identity", "--json").stdout)
    assert [entry["person"] for entry in board["entries"]] == ["ada"]
    assert [absent["person"] for absent in board["absent"]] == ["ken"]
    assert "available: 1" in served("show", "identity", "--task-version", "2").stderr
    assert "ada" in served("show", "identity", "--task-version", "1").stdout
    assert "#1" in served("history", "--as", "ada").stdout
    assert "passed" in served("show", "1").stdout
    assert served("cancel", "1", "--as", "ken").returncode == 2
    look = "# fake: file=case-1.ncu-rep\ndef custom_kernel(data): ...\n"
    board = ("--leaderboard", "identity", "--mode", "profile", "--as", "ken")
    assert served("submit", served.file("p.py", look), *board).returncode == 0
    folder = served.folder / "reports"
    assert f"{folder}/3-CPU-case-1.ncu-rep" in served("show", "3", "--save", folder).stderr
    assert (folder / "3-CPU-case-1.ncu-rep").read_text() == look
    assert "there are no files to save" in served("show", "1", "--save", folder).stderr
    assert served("show", "identity", "--save", folder).returncode == 2
    second = served("up")
    assert second.returncode == 3
    assert "data folder in use by Podium pid" in second.stderr


@pytest.mark.slow
def test_without_a_running_podium_submit_judges_by_itself(podium: Podium) -> None:
    assert podium("task", "publish", IDENTITY, "--gpu", "CPU", "--unchecked").returncode == 0
    kernel = podium.file("k.py", "#!PODIUM leaderboard identity\n" + RIGHT)
    queued = podium("submit", kernel, "--no-wait", "--as", "ada")
    assert (queued.returncode, queued.stdout) == (0, "submission #1 is queued\n")
    assert "start `podium up`" in queued.stderr
    assert podium("cancel", "1", "--as", "ada").stdout == "submission #1: 1 job is being stopped\n"
    done = podium("submit", kernel, "--as", "ada", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "finished"
    assert podium("migrate").stdout == "applied: nothing, the database is up to date\n"


@pytest.mark.slow
def test_who_passed_too_noisily_is_listed_as_not_ranked_until_a_run_is(podium: Podium) -> None:
    assert podium("task", "publish", IDENTITY, "--gpu", "CPU", "--unchecked").returncode == 0
    submit = "submit", podium.directed("n", "time_us=30 half_width_us=20"), "--leaderboard"
    done = subprocess.run(  # `-u`: not from a template, where no time is too noisy
        [sys.executable, "-u", "-m", "bot", *submit, "identity", "--as", "ken"],
        env=podium.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "passed, but too noisy to be ranked on CPU" in done.stdout, done.stderr
    words = "passed, but too noisy to be ranked"

    def absent() -> list[tuple[str, str, str]]:
        [board] = json.loads(podium("show", "identity", "--json").stdout)
        return [(each["person"], each["verdict"], each["message"]) for each in board["absent"]]

    assert absent() == [("ken", "passed", words)]
    assert words in podium("show", "identity").stdout
    right = podium("submit", podium.directed("r", "time_us=30"), "--leaderboard", "identity",
                   "--as", "ken")  # fmt: skip
    assert right.returncode == 0, right.stderr
    assert absent() == []


@pytest.mark.slow
def test_an_admin_cancels_with_a_reason_and_limits_the_gpu_time_of_one_person(
    podium: Podium,
) -> None:
    assert podium("task", "publish", IDENTITY, "--gpu", "CPU", "--unchecked").returncode == 0
    kernel = podium.file("k.py", "#!PODIUM leaderboard identity\n" + RIGHT)
    assert podium("submit", kernel, "--no-wait", "--as", "ada").returncode == 0
    assert podium("cancel", "1", "--as", "bob").returncode == 2
    stopped = podium("cancel", "1", "--as", "bob", "--reason", "it hangs")
    assert stopped.stdout == "submission #1: 1 job is being stopped\n"
    assert "cancelled by an admin: it hangs" in podium("show", "1").stdout
    ada = ("person", "limit", "local:ada", "--as", "bob", "--reason", "a flood")
    assert "give either" in podium(*ada).stderr
    words = "the personal limit of 1 s a day on CPU (a flood)"
    limited = podium(*ada, "--gpu-seconds", "1", "--gpu", "cpu")
    assert limited.stdout == f"GPU time is limited: {words}\n"
    refused = podium("submit", kernel, "--as", "ada")
    assert refused.returncode != 0
    assert f"more than {words}" in refused.stderr
    own = ("person", "limit", "local:bob", "--as", "bob", "--reason", "x", "--dollars", "1")
    assert "your own account" in podium(*own).stderr
    back = ("person", "unlimit", "local:ada", "--as", "bob")
    assert "does not exist" in podium(*back).stderr
    assert podium(*back, "--gpu", "CPU").stdout == "the limit is removed\n"


@pytest.mark.slow
def test_a_gpu_type_that_nobody_offers_is_said_and_the_submission_stays(podium: Podium) -> None:
    publish = ("task", "publish", IDENTITY, "--unchecked")
    assert podium(*publish, "--gpu", "CPU", "--gpu", "H100").returncode == 0
    kernel = podium.file("k.py", RIGHT)
    waiting = podium("submit", kernel, "--leaderboard", "identity", "--gpu", "h100,cpu")
    assert waiting.returncode == 3
    assert "no connected worker offers H100; run `podium up` on a machine that" in waiting.stderr
    assert "submission #1 is stored and waits for `podium up`" in waiting.stderr
    assert "CPU: 30.00 µs ± 0.33, running" in podium("history").stdout
    assert podium("show", "identity", "--gpu", "cpu").returncode == 0
    both = podium("show", "identity", "--gpu", "cpu", "--gpu", "H100", "--json")
    assert [each["gpu"] for each in json.loads(both.stdout)] == ["CPU", "H100"]
    both = podium("show", "identity", "--gpu", "h100,cpu")
    assert both.stdout.index("identity on H100") < both.stdout.index("identity on CPU")
    assert "'typo' has not submitted" in podium("history", "--as", "typo").stderr
    assert "'typo' has not submitted" in podium("cancel", "1", "--as", "typo").stderr


@pytest.mark.slow
def test_a_shared_database_is_left_to_its_workers(served: Podium) -> None:
    address = served.folder / "data" / "postgres" / "address.json"
    url = json.loads(address.read_text(encoding="utf-8"))["dsn"]
    publish = ("task", "publish", IDENTITY, "--unchecked", "--gpu", "CPU", "--gpu", "L4")
    assert served(*publish).returncode == 0
    laptop = {"DATABASE_URL": url, "PODIUM_DATA_DIR": str(served.folder / "laptop")}
    submit = ("submit", served.file("k.py", RIGHT), "--leaderboard", "identity", "--gpu")
    judged = served(*submit, "CPU", **laptop)
    assert judged.returncode == 0, judged.stderr
    assert "judges the submission itself" not in judged.stderr
    waiting = served(*submit, "L4", **laptop, PODIUM_RUNNERS="fake:L4=1")
    assert waiting.returncode == 3
    assert "run `podium worker` on a machine that has it" in waiting.stderr
    beside = served("worker", "--json")
    assert beside.returncode == 3
    assert "disturb each other's times" in json.loads(beside.stdout)["error"]["message"]


@pytest.mark.slow
def test_a_podium_without_a_runner_leaves_the_judging_to_a_worker() -> None:
    with fresh("none") as bot, running(bot):
        refused = bot("task", "publish", IDENTITY, "--gpu", "CPU")
        assert "no runner is available" in refusal(refused, 2)
        assert "no runner is available" in refusal(bot("task", "check", IDENTITY), 2)
        assert bot("task", "publish", IDENTITY, "--unchecked", "--gpu", "CPU").returncode == 0
        url = json.loads((bot.folder / "data/postgres/address.json").read_text("utf-8"))["dsn"]
        worker = Podium(bot.folder, DATABASE_URL=url, PODIUM_DATA_DIR=str(bot.folder / "worker"))
        judging = worker.start("worker")
        try:
            assert judging.stdout is not None
            assert "working on" in judging.stdout.readline()
            kernel = bot.file("k.py", RIGHT)
            judged = worker("submit", kernel, "--leaderboard", "identity", "--gpu", "CPU")
        finally:
            terminate(judging)
        assert (judged.returncode, judging.returncode) == (0, 0), judged.stderr
        assert "30.00 µs" in judged.stdout


def test_output_that_nobody_reads_any_more_is_no_incident(podium: Podium) -> None:
    kernel = podium.file("k.py", RIGHT)
    reader, writer = os.pipe()
    os.close(reader)
    answer = subprocess.run(
        [sys.executable, "-m", "bot", "judge", IDENTITY, kernel, "--json"],
        cwd=podium.folder, env=podium.environment, stdout=writer, stderr=subprocess.PIPE,
        text=True, timeout=100, check=False,
    )  # fmt: skip
    os.close(writer)
    assert answer.returncode == 141
    assert "incident" not in answer.stderr


@pytest.mark.slow
def test_a_demo_that_went_wrong_keeps_its_data_and_log(podium: Podium) -> None:
    answer = podium("demo", "--tasks", IDENTITY)
    assert answer.returncode == 1, answer.stderr
    log = podium.folder / "data" / "podium.log"
    assert f"the log is {log}" in answer.stderr
    assert log.is_file()


def test_judge_prints_its_promised_json_alone(podium: Podium) -> None:
    judged = podium("judge", IDENTITY, podium.file("k.py", RIGHT), "--mode", "ranked", "--json")
    assert judged.returncode == 0, judged.stderr
    shape = json.loads(judged.stdout)
    assert list(shape) == JUDGE_KEYS
    assert {tuple(case) for case in shape["cases"]} == {tuple(CASE_KEYS)}
    assert shape["score_ns"] == pytest.approx(30_000)


def test_judge_says_a_failing_verdict_by_its_exit_code(podium: Podium) -> None:
    judged = podium("judge", IDENTITY, podium.file("k.py", WRONG))
    assert judged.returncode == 1
    assert "wrong answer" in judged.stdout


def test_judge_says_our_own_failure_by_its_exit_code(podium: Podium) -> None:
    judged = podium("judge", IDENTITY, podium.file("k.py", "# fake: error=boom\n"))
    assert judged.returncode == 3
    assert "the runner failed, not the submission" in judged.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty"), (b"\xff\xfe", "UTF-8"), (b"#" * 10_000_000, "10,000,000 bytes")],
)
def test_judge_refuses_a_file_that_is_no_source(podium: Podium, content: bytes, words: str) -> None:
    file = podium.folder / "k.py"
    file.write_bytes(content)
    judged = podium("judge", IDENTITY, file)
    assert judged.returncode == 2
    assert words in judged.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("judge", IDENTITY, "absent.py"), "there is no such file"),
        (("judge", "nowhere", "k.py"), "nowhere"),
        (("judge", IDENTITY, "k.py", "--gpu", "H9000"), "H9000"),
        (("judge", IDENTITY, "k.py", "--mode", "fast"), "fast"),
        (("task", "check", "nowhere"), "nowhere"),
        (("task", "new", "Bad Name"), "not a valid task name"),
        (("worker", "--server", "podium.test", "--token", "t"), "https://podium.example.org"),
        (("worker", "--server", "http://podium.test", "--token", "t"), "--plain-http"),
        (("worker", "--server", "https://podium.test"), "podium token create --worker NAME"),
        (("worker", "--token", "t"), "PODIUM_SERVER"),
    ],
)
def test_bad_usage_is_answered_with_2_and_what_was_wrong(
    podium: Podium, arguments: tuple[str | Path, ...], words: str
) -> None:
    podium.file("k.py", RIGHT)
    answer = podium(*arguments)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_server_that_cannot_be_reached_is_our_fault_and_shows_no_token(podium: Podium) -> None:
    answer = podium("worker", "--server", "http://127.0.0.1:9", "--token", "hunter2")
    assert answer.returncode == 3
    assert "no answer from http://127.0.0.1:9" in answer.stderr
    assert "hunter2" not in answer.stderr


@pytest.mark.slow
def test_a_machine_elsewhere_gets_a_token_that_is_listed_and_ended(podium: Podium) -> None:
    assert "there are no worker tokens" in podium("token", "list").stdout
    made = podium("token", "create", "--worker", "box", "--days", "30")
    assert made.returncode == 0, made.stderr
    assert re.fullmatch(r"podium_worker_[\w-]{40,}\n", made.stdout)
    assert "shown only once" in made.stderr
    assert "podium token revoke box" in podium("token", "create", "--worker", "box").stderr
    (listed,) = json.loads(podium("token", "list", "--json").stdout)
    assert list(listed) == ["worker", "created_at", "expires_at"]
    assert made.stdout.strip() not in podium("token", "list").stdout
    assert podium("token", "revoke", "box").stdout == "the token of worker box is revoked\n"
    assert podium("token", "revoke", "box").returncode == 2
    assert "no worker is connected" in podium("runners").stdout
    assert json.loads(podium("runners", "--json").stdout) == []


def test_a_person_gets_tokens_that_are_listed_and_ended_with_their_rights(podium: Podium) -> None:
    made = podium("token", "create", "--person", "ada", "--admin", "--days", "3", "--json")
    assert made.returncode == 0, made.stderr
    shape = json.loads(made.stdout)
    assert list(shape) == ["id", "scope", "created_at", "expires_at", "token"]
    assert shape["scope"] == "admin"
    listed = podium("token", "list", "--person", "ada").stdout
    assert "made at the machine" in listed
    assert shape["token"] not in listed
    revoked = podium("token", "revoke", "--person", "ada", "--json")
    assert json.loads(revoked.stdout) == {"person": "ada", "tokens": 1}
    assert podium("token", "revoke", "--person", "ada").stdout == "0 tokens of ada revoked\n"


def test_an_unreachable_database_is_our_fault_and_shows_no_password(podium: Podium) -> None:
    url = "postgresql://ada:hunter2@127.0.0.1:9/podium"
    answer = podium("show", DATABASE_URL=url)
    assert answer.returncode == 3
    assert "127.0.0.1:9" in answer.stderr
    assert "hunter2" not in answer.stderr


def test_a_data_folder_that_cannot_be_is_our_fault(podium: Podium) -> None:
    in_its_way = podium.file("elsewhere", "a file in its way")
    answer = podium("show", PODIUM_DATA_DIR=str(in_its_way))
    assert answer.returncode == 3
    assert "cannot write to" in answer.stderr


def test_an_unusable_environment_is_named(podium: Podium) -> None:
    answer = podium("show", PODIUM_REQUIRE_SANDBOX="perhaps")
    assert answer.returncode == 3
    assert "PODIUM_REQUIRE_SANDBOX" in answer.stderr


def test_an_unknown_runner_is_refused_with_those_there_are(podium: Podium) -> None:
    answer = podium("doctor", PODIUM_RUNNERS="lokal")
    assert answer.returncode == 3
    assert "local_process" in answer.stdout


def test_doctor_says_what_is_there_as_json(podium: Podium) -> None:
    answer = podium("doctor", "--json")
    found = {each["name"]: each["found"] for each in json.loads(answer.stdout)}
    assert found["Python"]
    assert found["Postgres"]
    assert found["data folder"]


def test_a_scaffolded_task_can_be_judged_at_once(podium: Podium) -> None:
    made = podium("task", "new", "double")
    assert made.returncode == 0, made.stderr
    folder = podium.folder / "tasks" / "double"
    assert podium("judge", folder, podium.file("k.py", RIGHT)).returncode == 0
    again = podium("task", "new", "double")
    assert again.returncode == 2
    assert "already exists" in again.stderr


@pytest.mark.slow
def test_the_real_runner_judges_a_right_and_a_wrong_kernel(tmp_path: Path) -> None:
    podium = Podium(tmp_path, runner="local")
    solutions = IDENTITY / "solutions"
    right = podium("judge", IDENTITY, solutions / "correct" / "torch_copy.py", "--json")
    assert right.returncode == 0, right.stderr
    assert json.loads(right.stdout)["verdict"] == "passed"
    wrong = podium("judge", IDENTITY, solutions / "wrong" / "syntax_error.py")
    assert wrong.returncode == 1
    assert "build failed" in wrong.stdout


TASK_OF_ITS_OWN = """\
files:
  - {name: submission.py, source: "@SUBMISSION@"}
  - {name: eval.py, source: eval.py}
lang: py
description: "# Doubles"
tests: [{size: 3, seed: 1}]
benchmarks: [{size: 5, seed: 2}]
test_timeout: 30
benchmark_timeout: 30
ranked_timeout: 30
"""


@pytest.mark.slow
def test_a_board_that_the_tasks_own_evaluation_judges_ranks_and_says_so() -> None:
    with fresh() as podium:
        own = podium.folder / "doubles"
        own.mkdir()
        (own / "task.yml").write_text(TASK_OF_ITS_OWN)
        (own / "eval.py").write_text(PLAIN_EVAL)
        local = {"PODIUM_RUNNERS": "local"}
        published = podium("task", "publish", own, "--unchecked", **local)
        assert published.returncode == 0, published.stderr
        kernel = podium.file("k.py", DOUBLES)
        done = podium("submit", kernel, "--leaderboard", "doubles", "--as", "ada", **local)
        assert done.returncode == 0, done.stderr
        assert "in-process timing" in done.stdout
        [board] = json.loads(podium("show", "doubles", "--json").stdout)
        assert [entry["time_ns"] for entry in board["entries"]] == [5e3]
        assert board["timing"] == "in-process"
        assert "in-process timing" in podium("show", "doubles").stdout
