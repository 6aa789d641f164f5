"""Tests of the command line's one handler of errors."""

import pytest
import typer
from structlog.testing import capture_logs

from bot.cli.errors import ExitCode, failure_of
from bot.domain import errors
from bot.domain.errors import SetupError, StoreError, UserError
from runners.contract import runner
from runners.contract.runner import RunnerError, RunnerLostError, UnknownCallError

FAMILIES = {
    UserError: ExitCode.USAGE,
    StoreError: ExitCode.INTERNAL,
    SetupError: ExitCode.INTERNAL,
    RunnerError: ExitCode.INTERNAL,
    RunnerLostError: ExitCode.INTERNAL,
    UnknownCallError: ExitCode.INTERNAL,
}


def _make(kind: type[Exception]) -> Exception:
    return UserError("unknown-board", "no such") if kind is UserError else kind("no such")


def test_every_error_that_the_program_defines_is_known_here() -> None:
    defined = {
        value
        for module in (errors, runner)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert defined == set(FAMILIES)


@pytest.mark.parametrize("kind", FAMILIES)
def test_each_family_has_its_exit_code_and_keeps_its_message(kind: type[Exception]) -> None:
    failure = failure_of(_make(kind))
    assert failure.exit_code is FAMILIES[kind]
    assert "no such" in failure.message
    assert failure.code != "incident"


def test_a_users_error_keeps_its_slug() -> None:
    assert failure_of(UserError("unknown-board", "no such")).code == "unknown-board"


def test_a_runners_fault_is_not_laid_on_the_submission() -> None:
    assert "not the submission" in failure_of(RunnerError("lost")).message


def test_bad_usage_is_the_persons_doing() -> None:
    failure = failure_of(typer.BadParameter("no such mode"))
    assert failure.exit_code is ExitCode.USAGE
    assert "no such mode" in failure.message


def test_bad_usage_says_where_the_usage_is_written() -> None:
    failure = failure_of(typer.BadParameter("Value error, no such mode."))
    assert failure.message == "Invalid value: no such mode; see `podium --help`"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), typer.Abort()])
def test_an_interruption_is_no_bug(error: BaseException) -> None:
    assert failure_of(error).exit_code is ExitCode.INTERRUPTED


def test_output_that_nobody_reads_any_more_is_no_bug() -> None:
    with capture_logs() as logged:
        failure = failure_of(SystemExit(1))
    assert (failure.exit_code, failure.message, logged) == (ExitCode.UNREAD, "", [])


def test_of_a_group_the_first_error_counts() -> None:
    group = BaseExceptionGroup("tasks", [ExceptionGroup("inner", [SetupError("no such")])])
    assert failure_of(group).code == "setup"


def test_anything_else_is_an_incident_whose_number_is_in_the_log() -> None:
    with capture_logs() as logged:
        failure = failure_of(ZeroDivisionError("secret detail"))
    assert failure.exit_code is ExitCode.INTERNAL
    assert "secret detail" not in failure.message
    assert logged[0]["incident"] in failure.message
    assert isinstance(logged[0]["exc_info"], ZeroDivisionError)
