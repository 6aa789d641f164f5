"""`podium worker`: judges the queue of a shared database, until Ctrl-C."""

import asyncio
from pathlib import Path

import typer

from bot.frontends.cli.context import CommandLine, DataFolder, command_line
from bot.frontends.cli.following import stop_signals


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(worker)


def worker(ctx: typer.Context, *, data: DataFolder = None) -> None:
    """Judge what is queued in the database of DATABASE_URL or of a `podium up` here."""
    asyncio.run(_work(command_line(ctx), data))


async def _work(line: CommandLine, data: Path | None) -> None:
    installation = line.installation.at(data)
    with stop_signals() as stop:
        async with (
            installation.open() as podium,
            installation.runners() as runners,
            installation.working(podium, runners),
        ):
            line.out.out(f"working on {podium.database}; Ctrl-C stops", highlight=False)
            await stop.wait()
            line.say("stopping: what runs may finish, the rest stays queued")
    line.say("stopped")
