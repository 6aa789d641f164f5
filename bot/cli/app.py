"""The `podium` command: every command of the folder `commands`, and one handler of errors."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from bot.app.installation import Installation
from bot.cli import commands
from bot.cli.context import CommandLine, command_line
from bot.cli.errors import ExitCode, Failure, failure_of
from runners import plugins


def build() -> typer.Typer:
    """The application with every command there is."""
    app = typer.Typer(
        name="podium",
        help="Leaderboards for GPU kernels that people can trust.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for name in plugins.names(commands):
        plugins.load(commands, name).register(app)
    return app


def _version(ctx: typer.Context, wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        line = command_line(ctx)
        line.out.out(f"podium {line.installation.version or 'of a checkout'}", highlight=False)
        raise typer.Exit


def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Say which one this is"),
    ] = False,
) -> None:
    """What can be said before every command."""


def run(installation: Installation, arguments: Sequence[str]) -> int:
    """Run one command line; gives the exit code, never raises."""
    line = CommandLine(
        installation, out=Console(highlight=False), err=Console(stderr=True, highlight=False)
    )
    try:
        result = typer.main.get_command(build()).main(
            args=list(arguments), prog_name="podium", standalone_mode=False, obj=line
        )
    except typer.Exit as ended:
        return ended.exit_code
    except BaseException as error:  # noqa: BLE001  the outermost handler: every error ends here
        return _tell(failure_of(error), line, arguments)
    if result == ExitCode.INTERRUPTED:  # the parser turned Ctrl-C into this number
        return _tell(failure_of(KeyboardInterrupt()), line, arguments)
    return int(result) if isinstance(result, int) else ExitCode.PASSED


def _tell(failure: Failure, line: CommandLine, arguments: Sequence[str]) -> int:
    if failure.message:
        line.say(f"podium: {failure.message}")
    if "--json" in arguments:
        error = {"code": failure.code, "message": failure.message}
        line.out.out(json.dumps({"error": error}), highlight=False)
    return failure.exit_code
