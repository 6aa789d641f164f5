"""What every command is handed: the installation and where to write."""

import getpass
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bot.domain.access import NOBODY, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.person import Person
from bot.frontends.cli.installation import Installation, OpenPodium
from bot.reports.lines import clean

_READ_AT_MOST = 32 << 20
"""Enough to say how much too large a file is, and too little to fill the memory."""

DataFolder = Annotated[
    Path | None,
    typer.Option("--data", help="Data folder; else PODIUM_DATA_DIR, else .podium", metavar="DIR"),
]
_LONGEST_NAME = 64

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, alone, on stdout")]
Actor = Annotated[
    str | None,
    typer.Option("--as", help="Act as this person of this machine", metavar="NAME"),
]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The installation, a console for results, and one for progress and errors."""

    installation: Installation
    out: Console
    err: Console

    def say(self, words: str) -> None:
        """One line for people, apart from the results."""
        self.err.out(clean(words), highlight=False)


def command_line(ctx: typer.Context) -> CommandLine:
    """The command line of a running command."""
    found = ctx.obj
    if not isinstance(found, CommandLine):
        raise TypeError("the application was started without its command line")
    return found


@asynccontextmanager
async def acting(
    line: CommandLine, data: Path | None, actor: str | None, *, enters: bool = True
) -> AsyncIterator[tuple[OpenPodium, Person]]:
    """Podium, opened, and who acts on it.

    With `enters` a new name gets an account; without it a name given by `--as` must have one, so
    that a slip of the pen is said and makes nobody.
    """
    name = actor_name(actor)
    async with line.installation.at(data).open() as podium:
        people, identity = podium.store.people, f"local:{name}"
        if actor is not None and not enters and await people.find(identity) is None:
            raise UserError(
                "unknown-person",
                f"nobody named {name!r} has submitted or published here; check the name of --as",
            )
        yield podium, await people.ensure(identity, name)


def viewer_here(person: PersonId = NOBODY) -> Viewer:
    """Who sits at this machine can read its database: no board is hidden here."""
    return Viewer(person, sees_all=True)


def actor_name(actor: str | None) -> str:
    """The name under which a person of this machine acts."""
    name = _user_name() if actor is None else actor.strip()
    if not name.isprintable() or not 1 <= len(name) <= _LONGEST_NAME:
        raise UserError("bad-name", f"a name has 1 to {_LONGEST_NAME} printable characters")
    return name


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise UserError(
            "bad-name", "this user has no name on this machine; say who you are with --as NAME"
        ) from error


def read_submission(path: Path) -> bytes:
    """A submission's bytes, however many are allowed; UserError when they cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_READ_AT_MOST)
    except FileNotFoundError:
        raise UserError("no-such-file", f"{path}: there is no such file; check its path") from None
    except OSError as error:
        raise UserError("no-such-file", f"{path}: cannot be read ({error.strerror})") from error
