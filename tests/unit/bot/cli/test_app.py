"""Tests of the application: its commands, and that every error ends in an exit code."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

import pytest
from typer.core import TyperGroup

from bot.app.installation import Installation
from bot.cli import commands
from bot.cli.app import CommandHelp, build, list_commands, run
from bot.domain.errors import SetupError, UserError
from bot.domain.tasks.bundle import TaskBundle
from tests.architecture.tree import ROOT


@dataclass(frozen=True, slots=True)
class _Failing:
    """An installation of which nothing works, in a way of one's choice."""

    error: BaseException
    data_dir: Path = Path(".podium")

    def at(self, data_dir: Path | None) -> Self:
        return self

    def read_task(self, path: Path, root: Path | None = None) -> TaskBundle:
        raise self.error


def _run(error: BaseException, *arguments: str) -> int:
    return run(arguments, cast("Installation", _Failing(error)))


def test_every_command_of_the_contract_is_there() -> None:
    assert set(build().commands) == {
        "up", "demo", "worker", "migrate", "doctor", "task", "judge", "submit", "show",
        "history", "cancel", "competition", "discord", "modal", "runners", "token", "login",
        "logout", "rerun", "withdraw", "backup", "restore", "export", "template", "final", "costs",
        "person",
    }  # fmt: skip


@pytest.mark.parametrize("each", list_commands(), ids=lambda each: each.name)
def test_a_command_is_listed_as_it_describes_itself(each: CommandHelp) -> None:
    own = build(each.name).commands[each.name]
    assert own.help is not None
    assert each.help == " ".join(own.help.split("\n\n")[0].split())
    assert hasattr(own, "commands") is each.is_group


@pytest.mark.parametrize("each", list_commands(), ids=lambda each: each.name)
def test_every_command_takes_json(each: CommandHelp) -> None:
    own = build(each.name).commands[each.name]
    for command in getattr(own, "commands", {"": own}).values():
        assert any("--json" in option.opts for option in command.params), command.name


def test_a_new_command_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hello.py").write_text(HELLO, encoding="utf-8")
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    try:
        assert run(["--help"]) == 0
        assert "hello        Greet a person." in capsys.readouterr().out
        assert run(["hello", "--help"]) == 0
        assert "whom to greet" in capsys.readouterr().out
        assert run(["hello", "Ada"], cast("Installation", None)) == 1
        assert capsys.readouterr().out == "hello Ada\n"
    finally:
        sys.modules.pop("bot.cli.commands.hello", None)


HELLO = """
from typing import Annotated

import typer

def hello(name: Annotated[str, typer.Argument(help="whom to greet")]) -> int:
    \"\"\"Greet a person.\"\"\"
    typer.echo(f"hello {name}")
    return 1
"""


@pytest.mark.parametrize(
    ("arguments", "imported"),
    [
        (["--help"], set()),
        (["migrate", "--help"], {"bot.cli.commands.installation"}),
        (["task", "new", "--help"], {"bot.cli.commands.task"}),
    ],
)
def test_help_imports_at_most_its_own_command(arguments: list[str], imported: set[str]) -> None:
    assert {each for each in _imported_by(arguments) if "cli.commands." in each} == imported


def test_the_list_of_commands_loads_nothing_that_runs_them() -> None:
    assert {each for each in _imported_by(["--help"]) if each.startswith("bot.")} == {
        "bot.cli", "bot.cli.app", "bot.cli.commands",
    }  # fmt: skip


def test_the_list_of_commands_needs_no_settings() -> None:
    assert _started(["--help"], {"PODIUM_HTTP_PORT": "nonsense"}).returncode == 0


def test_the_words_of_a_command_are_joined_as_the_documentation_has_them() -> None:
    group = build("person").commands["person"]
    assert isinstance(group, TyperGroup)
    assert list(group.commands) == ["reset-name", "limit", "unlimit"]


def test_a_bug_before_anything_is_opened_is_logged_on_stderr_alone() -> None:
    ended = _python(
        "from bot.cli import app; app.build = None; sys.exit(app.run(['show']) - 3)", []
    )
    assert ended.stdout == ""
    assert "Traceback" in ended.stderr
    assert "this is a bug in Podium, incident " in ended.stderr.splitlines()[-1]


def _imported_by(arguments: list[str]) -> set[str]:
    return set(_started(arguments, {}).stdout.rsplit("\n\n", 1)[-1].split())


def _started(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A process of its own, which ends with the names of the modules that it has loaded."""
    program = (
        "from bot.cli.app import run; status = run(sys.argv[1:]); "
        "print('\\n\\n', *sys.modules); sys.exit(status)"
    )
    return _python(program, arguments, environment)


def _python(
    program: str, arguments: list[str], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import sys; {program}", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **(environment or {})},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UserError("bad", "b"), 2),
        (SetupError("s"), 3),
        (ValueError("v"), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_an_error_ends_in_its_exit_code(error: BaseException, code: int) -> None:
    assert _run(error, "judge", "task", "kernel.py") == code


def test_an_interruption_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    _run(KeyboardInterrupt(), "judge", "task", "kernel.py")
    assert capsys.readouterr().err == "podium: interrupted\n"


def test_a_message_goes_to_stderr_and_json_alone_to_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run(UserError("bad-task", "line 3"), "judge", "t", "k.py", "--json") == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"error": {"code": "bad-task", "message": "line 3"}}
    assert captured.err == "podium: line 3\n"


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["judge"], ["judge", "t", "k", "--mode", "fast"]]
)
def test_bad_usage_is_2(arguments: list[str]) -> None:
    assert _run(ValueError("not reached"), *arguments) == 2


def test_help_is_0() -> None:
    assert _run(ValueError("not reached"), "judge", "--help") == 0
