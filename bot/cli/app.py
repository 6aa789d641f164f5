"""The `podium` command: lists the commands of the folder `commands`, and runs one of them.

The list is parsed from the text of their files. Importing them all would take most of a second, so
only the command that runs is imported.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperGroup

from bot.cli import commands
from runners import plugins

if TYPE_CHECKING:
    from bot.app.installation import Installation

_INTERRUPTED = 130
"""The parser's exit code for Ctrl-C."""
_GROUP = re.compile(r'^GROUP = "(.+)"$', re.MULTILINE)
_COMMAND = re.compile(r'^def ([a-z]\w*)\(.*?^    """(.+?)(?:"""|\n\n)', re.MULTILINE | re.DOTALL)
"""A public function and the first paragraph of its docstring."""


@dataclass(frozen=True, slots=True)
class CommandHelp:
    """One line of `podium --help`; `file` is the module of the command."""

    name: str
    help: str
    file: str
    is_group: bool = False


def list_commands() -> tuple[CommandHelp, ...]:
    """Return every command by name, parsed from the text of the files in `commands`.

    A file with a `GROUP` is one command, named after the file, and its public functions are the
    subcommands. In any other file each public function is a command.
    """
    found = (each for file in plugins.names(commands) for each in _commands_of(file))
    return tuple(sorted(found, key=lambda each: each.name))


def _commands_of(file: str) -> Iterator[CommandHelp]:
    spec = find_spec(f"{commands.__name__}.{file}")
    text = Path(str(spec and spec.origin)).read_text(encoding="utf-8")
    group = _GROUP.search(text)
    if group is not None:
        yield CommandHelp(file, group[1], file, is_group=True)
        return
    for match in _COMMAND.finditer(text):
        yield CommandHelp(_name(match[1]), " ".join(match[2].split()), file)


def build(name: str = "") -> TyperGroup:
    """Return the application. It has the named command, and only the help lines of all others."""
    app = typer.Typer(
        name="podium",
        help="Leaderboards for GPU kernels: submit, judge, rank and publish.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    application = typer.main.get_group(app)
    for each in list_commands():
        if each.name == name:
            _load(each, application)
        else:
            application.add_command(TyperCommand(each.name, help=each.help))
    return application


def _load(wanted: CommandHelp, application: TyperGroup) -> None:
    """Import a command's file and add the command."""
    module = plugins.load(commands, wanted.file)
    app = typer.Typer(name=wanted.file, help=wanted.help, no_args_is_help=True)
    for name, function in vars(module).items():
        public = inspect.isfunction(function) and not name.startswith("_")
        if public and function.__module__ == module.__name__:
            app.command(_name(name))(function)
    group = typer.main.get_group(app)
    application.add_command(group if wanted.is_group else group.commands[wanted.name])


def _name(function: str) -> str:
    """Return the name of a function's command: `import_` is `import`, which Python reserves."""
    return function.removesuffix("_").replace("_", "-")


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        from bot.app.doors import version  # noqa: PLC0415 - see the top

        typer.echo(f"podium {version() or '(a checkout without a version)'}")
        raise typer.Exit


def _options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit"
        ),
    ] = False,
) -> None:
    """Declare the options that come before the command."""


def run(arguments: Sequence[str], installation: "Installation | None" = None) -> int:
    """Run one command line and return its exit code. It never raises.

    Without an installation, a command that needs one creates it from the environment.
    """
    name = next((each for each in arguments if not each.startswith("-")), "")
    try:
        result = build(name).main(
            args=list(arguments), prog_name="podium", standalone_mode=False, obj=installation
        )
        if result == _INTERRUPTED:
            raise KeyboardInterrupt  # noqa: TRY301 - handled like one from a command
    except typer.Exit as ended:
        return ended.exit_code
    except BaseException as error:  # noqa: BLE001  the outermost handler: every error ends here
        from bot.cli.errors import report_error  # noqa: PLC0415 - see the top

        return report_error(error, arguments)
    return int(result) if isinstance(result, int) else 0
