"""The commands at a server, which is the real application: the same words, shapes and exit codes.

No network and no process: the events come all at once at the end, so the status is asked for often.
"""

import asyncio
import io
import json
import sys
from functools import partial
from pathlib import Path

import pytest

from bot.app.context import SystemClock
from bot.app.installation import Installation
from bot.app.logs import log_to
from bot.cli.app import run
from bot.cli.context import program
from bot.cli.errors import ExitCode
from bot.domain.accounts import MACHINE, Person, Rights
from bot.domain.publication import PublishRequest
from bot.domain.tasks.scaffold import scaffold
from bot.remote.client import client as remote_client
from bot.remote.client import publishing, watch
from bot.services.publishing import engine
from bot.services.publishing.publish import publish
from bot.services.tokens import create_token
from bot.settings import Settings
from tests.doubles.factories import make_task
from tests.doubles.task_zips import RIGHT as RIGHT_OF_SCAFFOLD
from tests.doubles.visiting import SERVER, Visiting

RIGHT = "# fake: time_us=30\ndef custom_kernel(data): ...\n"
WRONG = "# fake: verdict=wrong_answer\ndef custom_kernel(data): ...\n"
LOOKED = "# fake: file=case-1.ncu-rep\ndef custom_kernel(data): ...\n"
BOARD = ("--leaderboard", "vectoradd")


@pytest.fixture
def podium(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Visiting:
    """A board of Ken's, and Ada's token."""
    log_to(tmp_path / "podium.log")  # the server's words are none of the command's
    monkeypatch.setattr(watch, "POLL_S", 0.02)
    monkeypatch.setattr(watch, "MIN_POLL_S", 0.001)
    monkeypatch.setattr(publishing, "CHECK_POLL_S", 0.01)
    monkeypatch.setattr(engine, "POLL_S", 0.01)
    visiting = Visiting()
    visiting.token = asyncio.run(_opened(visiting))
    return visiting


async def _opened(visiting: Visiting) -> str:
    ken = await _person(visiting, "ken")
    await publish(visiting.store, SystemClock(), PublishRequest(ken.id), make_task())
    return (
        await create_token(visiting.store, (await _person(visiting, "ada")).id, "laptop")
    ).secret


async def _another_board(visiting: Visiting, **changes: object) -> None:
    ken = await _person(visiting, "ken")
    task = make_task(**changes)
    await publish(visiting.store, SystemClock(), PublishRequest(ken.id, "another"), task)


async def _person(visiting: Visiting, name: str) -> Person:
    return await visiting.store.people.ensure(f"local:{name}", name)


@pytest.fixture
def kernels(tmp_path: Path) -> dict[str, str]:
    """The paths of kernels."""
    texts = {"right": RIGHT, "wrong": WRONG, "looked": LOOKED, "not_text": "a\0b"}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    return {name: str(tmp_path / f"{name}.py") for name in texts}


def _number(capsys: pytest.CaptureFixture[str]) -> str:
    """Of the submission that a command has told of as JSON."""
    return str(json.loads(_last(capsys))["submission"])


def test_everything_reads_there_as_it_does_here(
    podium: Visiting,
    kernels: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(remote_client, "MOST_ON_A_PAGE", 1)
    asyncio.run(_another_board(podium))
    assert podium.there("submit", kernels["right"], *BOARD, "--json") == ExitCode.PASSED
    first = _number(capsys)
    assert podium.there("submit", kernels["wrong"], *BOARD, "--json") == ExitCode.VERDICT
    second = _number(capsys)
    assert podium.here("submit", kernels["wrong"], *BOARD, "--as", "ken") == ExitCode.VERDICT
    assert podium.there("withdraw", second, "--reason", "a slip") == ExitCode.PASSED
    assert podium.here("rerun", second, "--as", "ada", "--json") == ExitCode.VERDICT
    third = _number(capsys)
    assert podium.here("withdraw", third, "--as", "ada", "--json") == ExitCode.PASSED
    assert json.loads(_last(capsys)) == {"submission": int(third), "withdrawn": True}
    seen = (
        ["show"], ["show", "vectoradd"], ["show", "vectoradd", "--gpu", "cpu"], ["show", first],
        ["show", f"#{second}"], ["show", third], ["history"], ["history", "--limit", "1"],
        ["history", "--leaderboard", "vectoradd"], ["runners"],
    )  # fmt: skip
    for command in seen:
        for more in ([], ["--json"]):
            act = ["--as", "ada"] if command[0] == "history" else []
            assert podium.here(*command, *act, *more) == ExitCode.PASSED
            here = capsys.readouterr()
            assert podium.there(*command, *more) == ExitCode.PASSED
            there = capsys.readouterr()
            if command != ["runners"]:  # whose signs of life have a time
                assert (there.out, there.err) == (here.out, here.err)
            assert there.out


def test_the_rest_is_done_there_as_it_is_here(
    podium: Visiting,
    kernels: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert podium.there("submit", kernels["looked"], *BOARD, "--mode", "profile", "--json") == 0
    first = _number(capsys)
    assert podium.there("show", first, "--save", str(tmp_path / "kept")) == 0
    assert (tmp_path / "kept" / f"{first}-CPU-case-1.ncu-rep").read_text() == LOOKED
    assert podium.there("rerun", first, "--mode", "test") == 0
    told = capsys.readouterr()
    assert "passed in a test run on CPU" in told.out
    assert "CPU: passed" in told.err
    assert podium.there("cancel", first) == 0
    assert f"submission #{first} has already ended" in capsys.readouterr().out
    assert podium.there("submit", kernels["right"], *BOARD, "--no-wait") == 0
    assert capsys.readouterr().out.endswith(" is queued\n")
    assert podium.there("runners", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "worker 1"  # as strangers know it


def test_refusals_are_the_same(
    podium: Visiting, kernels: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert podium.here("submit", kernels["right"], *BOARD, "--as", "ken", "--json") == 0
    kens = _number(capsys)
    assert podium.there("show") == 0
    refused = (
        ["submit", kernels["right"], "--leaderboard", "vectorad"], ["submit", kernels["not_text"]],
        ["submit", kernels["right"]], ["submit", kernels["right"], *BOARD, "--gpu", "H1000"],
        ["cancel", kens], ["withdraw", kens], ["rerun", kens], ["cancel", "999"],
        ["show", "vectorad"], ["show", "vectoradd", "--task-version", "7"], ["show", "999"],
        ["history", "--leaderboard", "nowhere"],
    )  # fmt: skip
    for command in refused:
        act = [] if command[0] == "show" else ["--as", "ada"]
        capsys.readouterr()
        assert podium.here(*command, *act, "--json") == ExitCode.USAGE
        here = capsys.readouterr()
        assert podium.there(*command, "--json") == ExitCode.USAGE
        assert capsys.readouterr() == here


def test_a_template_is_the_same_here_and_there_and_writes_over_nothing(
    podium: Visiting, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"t.py": "#!PODIUM leaderboard elsewhere\nx = 1\n"}
    asyncio.run(_another_board(podium, files=files, templates={"Python": "t.py"}))
    made, there = tmp_path / "made.py", tmp_path / "there.py"
    assert podium.here("template", "another", str(made), "--json") == 0
    assert json.loads(_last(capsys)) == {"board": "another", "file": str(made)}
    assert podium.there("template", "another", str(there), "--lang", "Python") == 0
    assert _last(capsys) == f"wrote {there}; next: {program()} submit {there} --server {SERVER}"
    assert made.read_text() == there.read_text() == "#!PODIUM leaderboard another\nx = 1\n"
    refused = {
        ("another", str(made)): f"{made} already exists; choose another name",
        ("another", str(tmp_path / "no" / "a.py")): "cannot be written (No such file or directory)",
        ("another", str(tmp_path / "b.py"), "--lang", "Pythn"): "did you mean Python?",
        ("vectoradd", str(tmp_path / "b.py")): "this task has no template",
        ("anothr", str(tmp_path / "b.py")): "did you mean another?",
    }
    for command, words in refused.items():
        for ask in (podium.here, podium.there):
            assert ask("template", *command) == ExitCode.USAGE
            assert words in capsys.readouterr().err
    assert made.read_text() == there.read_text()
    assert not (tmp_path / "b.py").exists()


def test_without_a_token_one_looks_and_is_asked_to_sign_in(
    podium: Visiting, kernels: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    podium.token = ""
    assert podium.there("show", "vectoradd") == ExitCode.PASSED
    for command in (["submit", kernels["right"], *BOARD], ["history"], ["cancel", "3"]):
        assert podium.there(*command) == ExitCode.USAGE
        assert f"podium login {SERVER}" in capsys.readouterr().err
    podium.token = "podium_nobodys"  # noqa: S105
    assert podium.there("show", "vectoradd") == ExitCode.USAGE
    assert "refuses the token" in capsys.readouterr().err


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """A folder with two tasks, the second of which lets a wrong solution pass."""
    folder = tmp_path / "tasks"
    for name in ("double", "loose"):
        for file, text in scaffold(name).items():
            path = folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            loose = name == "loose" and "wrong" in file
            path.write_text(RIGHT_OF_SCAFFOLD if loose else text)
    return folder


def _creating(podium: Visiting, name: str) -> str:
    """A token of somebody who may create boards."""

    async def made() -> str:
        person = await _person(podium, name)
        await podium.store.rights.replace(person.id, MACHINE, Rights(is_creator=True))
        return (await create_token(podium.store, person.id, "laptop")).secret

    return asyncio.run(made())


def test_a_task_is_published_there_as_it_is_here(
    podium: Visiting, tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    podium.token = _creating(podium, "ada")
    double, until = str(tasks / "double"), ("--deadline", "2099-01-31 18:00")
    told = {}
    for name, ask, act in (("here", podium.here, ["--as", "ken"]), ("there", podium.there, [])):
        board = ["--name", f"double-{name}"]
        capsys.readouterr()
        said = []
        for more in ([*until, "--json"], [], ["--no-deadline"], ["--gpu", "CPU", "--json"]):
            assert ask("task", "publish", double, *board, *act, *more) == ExitCode.PASSED
            said.append(capsys.readouterr())
        told[name] = [(each.out, each.err) for each in said]
    theirs = [tuple(text.replace("there", "here") for text in each) for each in told["there"]]
    assert theirs == told["here"]
    assert json.loads(theirs[0][0].splitlines()[-1])[0]["dry_run"] == ["CPU"]


def test_a_board_is_exported_there_as_it_is_here(
    podium: Visiting, kernels: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert podium.there("submit", kernels["right"], *BOARD) == ExitCode.PASSED
    assert podium.there("export", "vectoradd", "--out", str(tmp_path / "x")) == ExitCode.USAGE
    podium.token = _creating(podium, "ken")
    told = {}
    for name, ask in (("here", podium.here), ("there", podium.there)):
        capsys.readouterr()
        out = tmp_path / name
        for form in ("csv", "parquet"):
            asked = "export", "vectoradd", "--out", str(out / form), "--format", form
            assert ask(*asked) == ExitCode.PASSED
        assert ask("export", "vectoradd", "--out", str(out / "csv")) == ExitCode.USAGE
        assert ask("export", "vectorad", "--out", str(out / "not")) == ExitCode.USAGE
        words = capsys.readouterr()
        said = (words.out + words.err).replace(str(out), "")
        files = {
            str(each.relative_to(out)): each.read_bytes()
            for each in sorted(out.rglob("*"))
            if each.is_file()
        }
        told[name] = said, files
    assert told["there"] == told["here"]
    assert "asynchronous generator" not in told["there"][0]
    assert len(told["there"][1]) == 2 * 5


def test_a_competition_with_foreign_keys_is_published_there_as_it_is_here(
    podium: Visiting, tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    podium.token = _creating(podium, "ada")
    with (tasks / "double" / "task.yml").open("a") as file:
        file.write("\nreward: 100\n")
    competition = tmp_path / "competition.yaml"
    problem = "{directory: tasks/double, name: doubling, gpus: [CPU]}"
    competition.write_text(f"name: x\nproblems:\n  - {problem}\n")
    for ask, act in ((podium.there, []), (podium.here, ["--as", "ada"])):
        assert ask("task", "publish", str(competition), *act) == ExitCode.PASSED
        said = capsys.readouterr()
        assert "unknown key 'reward'" in said.err
        first, second = said.out.splitlines()
        assert first.startswith("doubling: Podium's judge grades")
        assert second.startswith("doubling on CPU")


COMPETITION = """\
name: Spring cup
description: Both of them.
ranks: [25, 18]
problems:
  - {directory: tasks/double, name: first, gpus: [CPU], deadline: "2099-06-30 18:00"}
  - {directory: tasks/double, name: second, gpus: [CPU]}
"""


def test_a_competition_is_deleted_there_as_it_is_here(
    podium: Visiting, tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    podium.token = _creating(podium, "ada")
    (tmp_path / "cup.yaml").write_text(COMPETITION.replace("Spring", "Winter"))
    for ask, act in ((podium.here, ["--as", "ada"]), (podium.there, [])):
        assert ask("task", "publish", str(tmp_path / "cup.yaml"), *act) == ExitCode.PASSED
        delete = ("competition", "delete", "Winter cup", "--reason", "over", *act)
        assert ask(*delete) == ExitCode.PASSED
        assert "Winter cup is deleted; its boards stay: first, second" in capsys.readouterr().out
        assert ask(*delete) == ExitCode.USAGE
        assert ask("show", "first") == ExitCode.PASSED


def test_a_competition_is_shown_changed_and_exported_there_as_it_is_here(
    podium: Visiting, tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    podium.token = _creating(podium, "ada")
    (tmp_path / "cup.yaml").write_text(COMPETITION)
    assert podium.there("task", "publish", str(tmp_path / "cup.yaml")) == ExitCode.PASSED
    said = capsys.readouterr()
    assert said.out.count(" on CPU: created, task version 1") == 2
    assert f"next: {program()} competition show 'Spring cup'" in said.err
    told = {}
    for name, ask, act in (("here", podium.here, ["--as", "ada"]), ("there", podium.there, [])):
        for more in ((), ("--json",)):
            assert ask("competition", "show", *more) == ExitCode.PASSED
            assert ask("competition", "show", "Spring cup", *more) == ExitCode.PASSED
        assert ask("competition", "show", "Spring cap") == ExitCode.USAGE
        # the second board has no deadline, so it is closed and then extended
        assert ask("competition", "close", "Spring cup", "--json", *act) == ExitCode.PASSED
        until = "2100-01-01 12:00" if name == "here" else "2100-01-02 12:00"
        assert ask("competition", "extend", "Spring cup", until, *act) == ExitCode.PASSED
        assert ask("competition", "extend", "Spring cup", until, *act) == ExitCode.USAGE
        out = tmp_path / name
        exported = ("competition", "export", "Spring cup", "--out", str(out), "--format", "csv")
        assert ask(*exported) == ExitCode.PASSED
        files = {str(each.relative_to(out)) for each in out.rglob("*") if each.is_file()}
        words = capsys.readouterr()
        told[name] = words.out.replace(str(out), "").splitlines()[-1], files
        assert "competition Spring cup would close at another time" in words.err
        assert "did you mean Spring cup?" in words.err
        assert f"Spring cup: open until {until} UTC" in words.out
        assert "points of the first places on each board and GPU type: 25, 18" in words.out
    assert told["there"] == told["here"]
    line, files = told["there"]
    assert line == ": the overall ranking, and 2 boards: first, second"
    assert {"overall.csv", "points.csv", "first/README.md", "second/results.csv"} <= files


def test_a_task_that_must_not_be_published_is_refused_there_as_it_is_here(
    podium: Visiting, tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loose = str(tasks / "loose")
    assert podium.there("task", "publish", loose) == ExitCode.USAGE
    assert "the right to create boards" in capsys.readouterr().err
    podium.token = _creating(podium, "ada")
    for more in ([], ["--name", "vectoradd"], ["--deadline", "2020-01-01"], ["--gpu", "H100"]):
        capsys.readouterr()
        assert podium.here("task", "publish", loose, *more, "--as", "ada") == ExitCode.USAGE
        here = capsys.readouterr()
        assert podium.there("task", "publish", loose, *more) == ExitCode.USAGE
        assert capsys.readouterr() == here
    assert podium.there("task", "publish", str(tasks)) == ExitCode.USAGE
    assert "published already: double\n" in capsys.readouterr().err
    assert podium.there("task", "publish", loose, "--unchecked") == ExitCode.USAGE
    assert "--unchecked is for this machine" in capsys.readouterr().err


@pytest.fixture
def laptop(podium: Visiting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A machine with nothing but a home; its network leads to the one server."""
    for name in ("PODIUM_DATA_DIR", "DATABASE_URL", "PODIUM_CLI_SERVER", "PODIUM_CLI_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    entering = partial(remote_client.open_remote, transport=podium.way)
    monkeypatch.setattr(remote_client, "open_remote", entering)
    return Installation(Settings(config_home=tmp_path / "config"))


def test_one_signs_in_and_out(
    podium: Visiting,
    laptop: Installation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{podium.token}\n"))
    assert run(["login", f"{SERVER}/"], laptop) == 0
    said = capsys.readouterr()
    assert said.out == f"signed in to {SERVER} as ada\n"
    assert podium.token not in said.out + said.err
    assert run(["show", "--json"], laptop) == 0
    assert json.loads(capsys.readouterr().out)[0]["board"] == "vectoradd"
    assert run(["history"], laptop) == 0
    assert capsys.readouterr().out.startswith("submissions of ada\n")
    assert run(["history", "--as", "ken"], laptop) == ExitCode.USAGE
    assert run(["logout", "--json"], laptop) == 0
    assert json.loads(capsys.readouterr().out) == {"server": SERVER, "person": "ada"}
    assert run(["logout"], laptop) == ExitCode.USAGE
    assert "you are not signed in to any server" in capsys.readouterr().err


def test_a_login_says_when_the_environment_sends_commands_elsewhere(
    podium: Visiting, laptop: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    for told, where in (
        (laptop.at(Path("data")), "this machine's own Podium"),
        (_with_server(laptop, "https://other.test"), "https://other.test"),
    ):
        assert run(["login", SERVER, "--token", podium.token], told) == 0
        assert f"commands still use {where}, because PODIUM_" in capsys.readouterr().err


def _with_server(laptop: Installation, url: str) -> Installation:
    return Installation(laptop.settings.model_copy(update={"cli_server": url}))


def test_a_long_history_comes_in_pages(
    podium: Visiting,
    kernels: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(remote_client, "MOST_ON_A_PAGE", 2)
    for _ in range(5):
        assert podium.there("submit", kernels["right"], *BOARD, "--no-wait") == 0
    capsys.readouterr()
    for limit, found in ((3, 3), (50, 5)):
        assert podium.there("history", "--limit", str(limit), "--json") == 0
        numbers = [each["submission"] for each in json.loads(_last(capsys))]
        assert len(numbers) == found
        assert numbers == sorted(set(numbers), reverse=True)


def _last(capsys: pytest.CaptureFixture[str]) -> str:
    """The last line, below the log."""
    return capsys.readouterr().out.splitlines()[-1]


def test_a_token_that_is_refused_is_not_kept(
    laptop: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["login", SERVER, "--token", "podium_guessed", "--json"], laptop) == ExitCode.USAGE
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "bad-token"
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert run(["login", SERVER], laptop) == ExitCode.USAGE
    assert run(["login", "http://podium.test", "--token", "t"], laptop) == ExitCode.USAGE
    assert "--plain-http" in capsys.readouterr().err
    assert run(["logout"], laptop) == ExitCode.USAGE


def test_a_server_that_is_away_is_our_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    laptop = Installation(Settings(config_home=tmp_path))
    assert run(["show", "--server", "http://127.0.0.1:9"], laptop) == ExitCode.INTERNAL
    assert "no answer from http://127.0.0.1:9" in capsys.readouterr().err
