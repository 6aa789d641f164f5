"""`podium up`: everything in one process, until Ctrl-C."""

import asyncio
import gc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from bot.frontends.cli.context import AsJson, CommandLine, DataFolder, command_line
from bot.frontends.cli.following import stop_signals
from bot.frontends.cli.shapes import dumps
from runners.contract.runner import Capabilities


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(up)


def up(ctx: typer.Context, *, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Run Podium here: database, queue and runners, until Ctrl-C."""
    asyncio.run(_serve(command_line(ctx), data, as_json=as_json))


async def _serve(line: CommandLine, data: Path | None, *, as_json: bool) -> None:
    installation = line.installation.at(data)
    with stop_signals() as stop:
        async with (
            installation.open(exclusive=True) as podium,
            installation.runners() as runners,
            installation.working(podium, runners),
            installation.doors(podium, runners) as doors,
        ):
            found = _Up(
                installation.data_dir,
                podium.database,
                [(runner.name, await runner.capabilities()) for runner in runners],
                [board.name for board in await podium.store.boards.all()],
                tuple(doors),
            )
            _keep_what_is_here()
            words = [dumps(found.shape())] if as_json else found.greeting()
            for each in words:
                line.out.out(each, highlight=False)
            await stop.wait()
            line.say("stopping: what runs may finish, the rest stays queued")
    line.say("stopped")


def _keep_what_is_here() -> None:
    """What has been loaded stays until the end: never look through it for garbage again.

    Each time that the collector did, everybody who waited for an answer waited a tenth of a second.
    """
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True)
class _Up:
    """What runs now."""

    data_dir: Path
    database: str
    offers: Sequence[tuple[str, Capabilities]]
    boards: Sequence[str]
    doors: Sequence[str]

    def greeting(self) -> list[str]:
        """For people, a line each."""
        boards = ", ".join(self.boards) or "none yet: podium task publish tasks/examples"
        return [
            "Podium is up",
            f"  data      {self.data_dir.resolve()}",
            f"  database  {self.database}",
            *(f"  runner    {name}: {_slots(offer)}" for name, offer in self.offers),
            *(f"  door      {door}" for door in self.doors),
            f"  boards    {boards}",
            "  submit    podium submit FILE --leaderboard NAME",
            "  stop      Ctrl-C",
        ]

    def shape(self) -> dict[str, object]:
        """For programs."""
        slots: Counter[str] = Counter()
        for _, offer in self.offers:
            slots.update(offer.gpus)
        return {
            "database": self.database,
            "slots": dict(slots),
            "boards": self.boards,
            "doors": self.doors,
        }


def _slots(offer: Capabilities) -> str:
    slots = ", ".join(f"{count} x {gpu}" for gpu, count in sorted(offer.gpus.items()))
    missing = ", ".join(offer.isolation.missing)
    return f"{slots}; sandbox {offer.isolation.outer}" + (f", without {missing}" if missing else "")
