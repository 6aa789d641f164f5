"""`podium up`: everything in one process, until Ctrl-C."""

import asyncio
import gc
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.context import (
    AsJson,
    CommandLine,
    DataFolder,
    LogToStderr,
    actor_name,
    command_line,
    program,
)
from bot.cli.follow import stop_signals
from bot.cli.json_output import dumps
from bot.domain.errors import UserError
from runners.contract.runner import Capabilities

if TYPE_CHECKING:
    from bot.app.context import OpenDoor
    from bot.app.installation import Installation


def up(
    ctx: typer.Context,
    *,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="Port of the web server, 0 for any free one (default: PODIUM_HTTP_PORT)",
        ),
    ] = None,
    log_to_stderr: LogToStderr = False,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Run Podium on this machine (database, web server, worker) until Ctrl-C."""
    line = command_line(ctx)
    installation = line.installation.at(data).on_port(port)
    asyncio.run(_serve(line, installation, log=log_to_stderr, as_json=as_json))


async def _serve(
    line: CommandLine, installation: "Installation", *, log: bool, as_json: bool
) -> None:
    with stop_signals() as stop:
        async with (
            installation.open(exclusive=True, log_to_stderr=log) as podium,
            installation.runners() as runners,
            installation.working(podium, runners),
            installation.doors(podium, runners) as doors,
            installation.ready(runners, doors) as offers,
        ):
            found = _Up(
                installation.data_dir,
                installation.examples,
                podium.database,
                offers,
                [board.name for board in await podium.store.boards.all()],
                doors,
            )
            _keep_what_is_here()
            words = [dumps(found.shape())] if as_json else found.greeting(_way_in(line, doors))
            for each in words:
                line.out.out(each, highlight=False)
            await stop.wait()
            line.say("stopping: running jobs finish, queued jobs stay queued")
    line.say("stopped")


def _way_in(line: CommandLine, doors: Sequence["OpenDoor"]) -> list[str]:
    """Return how the user of this machine signs in; a link is only printed on a terminal."""
    pages = next((door for door in doors if door.name.startswith("web ")), None)
    if pages is None:
        return []
    with suppress(UserError):  # a user who has no name here
        if pages.link_for is not None and line.out.file.isatty():
            return [pages.link_for(actor_name(None)), "as admin, once, within ten minutes"]
    return [f"with a token: {program()} token create --person NAME --admin"]


def _keep_what_is_here() -> None:
    """Exclude all objects loaded so far from garbage collection.

    Each collection of them delayed all waiting requests by a tenth of a second.
    """
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True)
class _Up:
    """The state of a running `podium up`."""

    data_dir: Path
    examples: Path
    database: str
    offers: Sequence[tuple[str, Capabilities]]
    boards: Sequence[str]
    doors: Sequence["OpenDoor"]

    def greeting(self, way_in: Sequence[str]) -> list[str]:
        """Return what people are shown at the start, as lines."""
        podium = program()
        boards = ", ".join(self.boards) or f"none yet: {podium} task publish {self.examples}"
        marks = ["sign in", *[""] * len(way_in)]
        return [
            "Podium is up",
            f"  data      {self.data_dir.resolve()}",
            f"  database  {self.database}",
            *(f"  runner    {name}: {_slots(offer)}" for name, offer in self.offers),
            *(f"  door      {_words(door)}" for door in self.doors),
            *(f"  {mark:<9} {words}" for mark, words in zip(marks, way_in, strict=False)),
            f"  boards    {boards}",
            f"  submit    {podium} submit FILE --leaderboard NAME",
            "  stop      Ctrl-C",
        ]

    def shape(self) -> dict[str, object]:
        """Return the same as JSON for programs."""
        slots: Counter[str] = Counter()
        for _, offer in self.offers:
            slots.update(offer.gpus)
        return {
            "database": self.database,
            "slots": dict(slots),
            "boards": self.boards,
            "doors": [door.name for door in self.doors],
        }


def _words(door: "OpenDoor") -> str:
    stands = door.line is None or door.line.stands
    return door.name if stands else f"{door.name}, not connected yet; see the log for the reason"


def _slots(offer: Capabilities) -> str:
    slots = ", ".join(f"{count} x {gpu}" for gpu, count in sorted(offer.gpus.items()))
    missing = ", ".join(offer.isolation.missing)
    return f"{slots}; sandbox {offer.isolation.outer}" + (f", without {missing}" if missing else "")
