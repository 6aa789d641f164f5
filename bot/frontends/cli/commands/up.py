"""`podium up`: everything in one process, until Ctrl-C."""

import asyncio
from collections import Counter
from pathlib import Path

import typer

from bot.frontends.cli.context import AsJson, CommandLine, DataFolder, command_line
from bot.frontends.cli.following import stop_signals
from bot.frontends.cli.installation import OpenPodium
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
        ):
            offers = [(runner.name, await runner.capabilities()) for runner in runners]
            boards = [board.name for board in await podium.store.boards.all()]
            if as_json:
                line.out.out(dumps(_shape(podium, offers, boards)), highlight=False)
            else:
                for words in _greeting(installation.data_dir, podium, offers, boards):
                    line.out.out(words, highlight=False)
            await stop.wait()
            line.say("stopping: what runs may finish, the rest stays queued")
    line.say("stopped")


def _greeting(
    data_dir: Path, podium: OpenPodium, offers: list[tuple[str, Capabilities]], boards: list[str]
) -> tuple[str, ...]:
    return (
        "Podium is up",
        f"  data      {data_dir.resolve()}",
        f"  database  {podium.database}",
        *(f"  runner    {name}: {_slots(offer)}" for name, offer in offers),
        f"  boards    {', '.join(boards) or 'none yet: podium task publish tasks/examples'}",
        "  submit    podium submit FILE --leaderboard NAME",
        "  stop      Ctrl-C",
    )


def _slots(offer: Capabilities) -> str:
    slots = ", ".join(f"{count} x {gpu}" for gpu, count in sorted(offer.gpus.items()))
    missing = ", ".join(offer.isolation.missing)
    return f"{slots}; sandbox {offer.isolation.outer}" + (f", without {missing}" if missing else "")


def _shape(
    podium: OpenPodium, offers: list[tuple[str, Capabilities]], boards: list[str]
) -> dict[str, object]:
    slots: Counter[str] = Counter()
    for _, offer in offers:
        slots.update(offer.gpus)
    return {"database": podium.database, "slots": dict(slots), "boards": boards}
