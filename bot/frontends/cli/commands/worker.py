"""`podium worker`: judges the queue of a shared database, until Ctrl-C."""

import asyncio
from pathlib import Path

import typer

from bot.frontends.cli.context import AsJson, CommandLine, DataFolder, command_line
from bot.frontends.cli.following import stop_signals
from bot.frontends.cli.shapes import dumps


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(worker)


def worker(ctx: typer.Context, *, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Judge what is queued in the database of DATABASE_URL, or of this data folder."""
    asyncio.run(_work(command_line(ctx), data, as_json=as_json))


async def _work(line: CommandLine, data: Path | None, *, as_json: bool) -> None:
    installation = line.installation.at(data)
    with stop_signals() as stop:
        async with (
            installation.open() as podium,
            installation.runners() as runners,
            installation.working(podium, runners),
        ):
            if as_json:
                line.out.out(dumps({"database": podium.database}), highlight=False)
            else:
                line.out.out(f"working on {podium.database}; Ctrl-C stops", highlight=False)
            await stop.wait()
            line.say("stopping: what runs may finish, the rest stays queued")
    line.say("stopped")
