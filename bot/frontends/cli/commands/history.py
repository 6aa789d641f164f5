"""`podium history`: what a person has submitted."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from bot.frontends.cli.context import (
    Actor,
    AsJson,
    CommandLine,
    DataFolder,
    actor_name,
    command_line,
)
from bot.frontends.cli.draw import draw
from bot.frontends.cli.shapes import dumps, history_json
from bot.reports.history import history_report
from bot.services.history import HistoryEntry
from bot.services.history import history as past


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(history)


def history(
    ctx: typer.Context,
    *,
    leaderboard: Annotated[str | None, typer.Option(help="Only this board")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most so many")] = 50,
    actor: Actor = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """List your submissions, newest first."""
    line = command_line(ctx)
    name = actor_name(actor)
    entries = asyncio.run(_history(line, data, name, leaderboard=leaderboard, limit=limit))
    if as_json:
        line.out.out(dumps([history_json(entry) for entry in entries]), highlight=False)
    else:
        draw(history_report(name, entries), line.out)


async def _history(
    line: CommandLine, data: Path | None, name: str, *, leaderboard: str | None, limit: int
) -> tuple[HistoryEntry, ...]:
    async with line.installation.at(data).open() as podium:
        person = await podium.store.people.ensure(f"local:{name}", name)
        return await past(podium.store, person.id, leaderboard, limit=limit)
