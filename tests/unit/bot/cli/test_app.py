"""Tests of the application: its commands, and that every error ends in an exit code."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

import pytest
import typer

from bot.app.installation import Installation
from bot.cli.app import build, run
from bot.domain.errors import SetupError, UserError
from bot.domain.task_bundle import TaskBundle


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
    return run(cast("Installation", _Failing(error)), arguments)


def test_every_command_of_the_contract_is_there() -> None:
    command = typer.main.get_command(build())
    names = set(getattr(command, "commands", {}))
    assert names == {
        "up", "demo", "worker", "migrate", "doctor", "task", "judge", "submit", "show",
        "history", "cancel", "discord", "modal", "runners", "token", "login", "logout", "rerun",
        "withdraw", "backup", "restore", "export", "template",
    }  # fmt: skip


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
