"""What every command receives: the installation, the consoles, and the shared options.

Functions import what only a running command needs, so that `--help` does not wait for it.
"""

import getpass
import json
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from bot.domain.board import NOBODY, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.reports.escaping import clean

if TYPE_CHECKING:
    from bot.app.context import OpenPodium
    from bot.app.installation import Installation
    from bot.cli.client import Client
    from bot.domain.accounts import Person
    from bot.reports.blocks import Report

DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Data folder (default: PODIUM_DATA_DIR, else .podium)", metavar="DIR"
    ),
]
_LONGEST_NAME = 64

AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON on stdout")]
LogToStderr = Annotated[
    bool,
    typer.Option("--log-to-stderr", help="Also write log events to stderr, for container logs"),
]
Actor = Annotated[
    str | None,
    typer.Option("--as", help="Act as this local person (default: your user name)", metavar="NAME"),
]
ServerUrl = Annotated[
    str | None,
    typer.Option(
        "--server",
        help="Podium server to use, or `local` for this machine (default: "
        "PODIUM_CLI_SERVER, else the server of `podium login`)",
        metavar="URL",
    ),
]

PlainHttp = Annotated[
    bool,
    typer.Option(
        "--plain-http",
        help="Allow unencrypted http:// to another machine; the token can be intercepted",
    ),
]


@dataclass(frozen=True, slots=True)
class Where:
    """The options by which a command chooses its Podium and the person it acts for."""

    data: Path | None = None
    server: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The installation, a console for results, and another for progress and errors."""

    installation: "Installation"
    out: Console
    err: Console

    def say(self, words: str) -> None:
        """Print a line for people, separate from the results."""
        self.err.out(clean(words), highlight=False)

    def write(self, words: str) -> None:
        """Print a line of the result."""
        self.out.out(words, highlight=False)

    def write_json(self, body: object) -> None:
        """Print JSON as the result."""
        self.write(dumps(body))

    def draw(self, *reports: "Report") -> None:
        """Print reports as the result, with an empty line between two."""
        from bot.cli.draw import draw  # noqa: PLC0415 - see the top

        for number, report in enumerate(reports):
            if number > 0:
                self.write("")
            draw(report, self.out)

    def answer(
        self, result: "str | Report | Sequence[Report]", body: object, *, as_json: bool
    ) -> None:
        """Print a result for people or, with `--json`, its JSON for programs."""
        if as_json:
            self.write_json(body)
        elif isinstance(result, str):
            self.write(result)
        else:
            self.draw(*(result if isinstance(result, Sequence) else [result]))

    @asynccontextmanager
    async def open_as_person(
        self, data: Path | None, actor: str | None, *, may_be_new: bool = True
    ) -> AsyncIterator[tuple["OpenPodium", "Person"]]:
        """Open Podium, and yield it with the person who acts on it.

        With `may_be_new` a new name gets an account. Without it, a name given by `--as` must have
        an account: a typo is then an error and creates none.
        """
        name = actor_name(actor)
        async with self.installation.at(data).open() as podium:
            people, identity = podium.store.people, f"local:{name}"
            if actor is not None and not may_be_new and await people.find(identity) is None:
                raise UserError(
                    "unknown-person",
                    f"{name!r} has not submitted or published anything here; "
                    "check the name of --as",
                )
            yield podium, await people.ensure(identity, name)

    def client_for_person(
        self, where: Where, *, may_be_new: bool = True
    ) -> AbstractAsyncContextManager["Client"]:
        """Open the client of the Podium that a command uses, for the acting person."""
        return self._client_of_server(where) or self._local_client(where, may_be_new=may_be_new)

    def client_for_viewer(self, where: Where) -> AbstractAsyncContextManager["Client"]:
        """Open the client of the Podium that a command uses, for a reader without an account."""
        return self._client_of_server(where) or self._local_client_for_viewer(where)

    @asynccontextmanager
    async def _local_client(self, where: Where, *, may_be_new: bool) -> AsyncIterator["Client"]:
        from bot.cli.client import LocalClient  # noqa: PLC0415 - see the top

        opened = self.open_as_person(where.data, where.actor, may_be_new=may_be_new)
        async with opened as (podium, person):
            local = self.installation.at(where.data)
            yield LocalClient(local, podium, viewer_here(person.id), person.name)

    @asynccontextmanager
    async def _local_client_for_viewer(self, where: Where) -> AsyncIterator["Client"]:
        from bot.cli.client import LocalClient  # noqa: PLC0415 - see the top

        local = self.installation.at(where.data)
        async with local.open() as podium:
            yield LocalClient(local, podium, viewer_here())

    def _client_of_server(self, where: Where) -> "AbstractAsyncContextManager[Client] | None":
        """Open a server's client; None for this machine. UserError if options contradict."""
        from bot.app.servers import LOCAL  # noqa: PLC0415 - see the top

        if where.data is not None:
            if where.server not in {None, LOCAL}:
                raise UserError(
                    "usage", "--data and --server cannot be combined; leave one of them out"
                )
            return None
        servers, named = self.installation.servers, where.server is not None
        url = servers.chosen(where.server)
        if url is None:
            return None
        if where.actor is not None:
            raise UserError(
                "usage",
                f"--as works only on this machine, because at {url} your token says who you are; "
                f"leave --as out, or use --server {LOCAL}",
            )
        return servers.client_of(url, self.say, named=named)


def dumps(value: object) -> str:
    """Return JSON as ASCII, so that it cannot contain terminal escapes."""
    return json.dumps(value, allow_nan=False)


def command_line(ctx: typer.Context) -> CommandLine:
    """Return what a running command receives; without an installation, create it from settings."""
    installation = _installation() if ctx.obj is None else ctx.obj
    return CommandLine(
        installation, Console(highlight=False), Console(stderr=True, highlight=False)
    )


def _installation() -> "Installation":
    from bot.app.installation import Installation  # noqa: PLC0415 - see the top
    from bot.app.logs import log_to_stderr  # noqa: PLC0415 - see the top
    from bot.settings import read_settings  # noqa: PLC0415 - see the top

    log_to_stderr()
    return Installation(read_settings())


def program() -> str:
    """Return the command that starts this program again from the same folder."""
    name = Path(sys.argv[0])
    if name.name != "podium":
        return f"{Path(sys.executable).name} -m bot"
    return "podium" if shutil.which("podium") == str(name.absolute()) else str(name)


def viewer_here(person: PersonId = NOBODY) -> Viewer:
    """Return a viewer who sees all boards, since this machine's user can read its database."""
    return Viewer(person, sees_all=True)


def actor_name(actor: str | None) -> str:
    """Return the name of the acting person: the name of `--as`, else the user's name."""
    name = _user_name() if actor is None else actor.strip()
    if not name.isprintable() or not 1 <= len(name) <= _LONGEST_NAME:
        raise UserError("bad-name", f"a name has 1 to {_LONGEST_NAME} printable characters")
    return name


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise UserError(
            "bad-name", "your user has no name on this machine; choose one with --as NAME"
        ) from error
