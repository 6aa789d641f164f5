"""The command line's only error handler: converts each kind of error to a text and an exit code."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import typer
from rich.console import Console

from bot.domain.errors import SetupError, StoreError, UserError
from bot.reports.escaping import clean
from runners.contract.runner import RunnerError


class ExitCode(IntEnum):
    """The result of a command for its caller."""

    PASSED = 0
    """Success; if there is a verdict, it is `passed`."""
    VERDICT = 1
    """The verdict, or the requested check, failed."""
    USAGE = 2
    """The person's error: the message says what to change."""
    INTERNAL = 3
    """An internal error, or one of the machine."""
    INTERRUPTED = 130
    """Ctrl-C."""
    UNREAD = 141
    """The reader of the output has stopped reading, as `head` does."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The text and exit code of a command that failed."""

    exit_code: ExitCode
    code: str
    message: str


def report_error(error: BaseException, arguments: Sequence[str]) -> int:
    """Print the error, with `--json` on stdout as well; return the exit code."""
    failure = failure_of(error)
    if failure.message:
        err = Console(stderr=True, highlight=False)
        err.out(clean(f"podium: {failure.message}"), highlight=False)
    if "--json" in arguments:
        body = {"error": {"code": failure.code, "message": failure.message}}
        Console(highlight=False).out(json.dumps(body), highlight=False)
    return failure.exit_code


def failure_of(error: BaseException) -> Failure:
    """Return the text and exit code for an error; an unknown error becomes an incident."""
    leaf = _first_leaf(error)
    match leaf:
        case UserError():
            return Failure(ExitCode.USAGE, leaf.code, leaf.message)
        case typer.TyperException():
            return Failure(ExitCode.USAGE, "usage", _usage(leaf))
        case KeyboardInterrupt() | typer.Abort() | SystemExit():
            return _interruption(leaf)
        case StoreError() | RunnerError():
            return _internal_error(leaf)
        case _:
            return _incident(error)


def _interruption(error: BaseException) -> Failure:
    """Return the failure for Ctrl-C, or for a closed pipe, for which rich raises SystemExit."""
    if isinstance(error, SystemExit):
        return Failure(ExitCode.UNREAD, "unread", "")
    return Failure(ExitCode.INTERRUPTED, "interrupted", "interrupted")


def _usage(error: typer.TyperException) -> str:
    """Return the parser's message, without the type of its error."""
    words = error.format_message().replace("Value error, ", "").rstrip(".")
    command = getattr(getattr(error, "ctx", None), "command_path", "podium")
    return f"{words}; see `{command} --help`" if words else ""


def _internal_error(error: StoreError | RunnerError) -> Failure:
    if isinstance(error, SetupError):
        return Failure(ExitCode.INTERNAL, "setup", str(error))
    if isinstance(error, StoreError):
        return Failure(ExitCode.INTERNAL, "store", f"the database failed: {error}; try again")
    words = f"the runner failed, not the submission: {error}; try again, or run `podium doctor`"
    return Failure(ExitCode.INTERNAL, "runner", words)


def _first_leaf(error: BaseException) -> BaseException:
    """Return the first error of a group; groups come from task groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _incident(error: BaseException) -> Failure:
    import structlog  # noqa: PLC0415 - a command that succeeds need not wait for it

    from bot.app.logs import log_to_stderr  # noqa: PLC0415 - the same

    incident = secrets.token_hex(4)
    if not structlog.is_configured():  # the command failed before it opened anything
        log_to_stderr()
    structlog.get_logger(__name__).error(
        "unexpected error", action="incident", incident=incident, exc_info=error
    )
    return Failure(
        ExitCode.INTERNAL,
        "incident",
        f"this is a bug in Podium, incident {incident}; report it with the traceback from "
        "podium.log in the data folder, or from above if there is no log",
    )
