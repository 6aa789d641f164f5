"""`podium history`: what a person has submitted."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from bot.domain.person import Person
from bot.frontends.cli.context import (
    Actor,
    AsJson,
    CommandLine,
    DataFolder,
    acting,
    command_line,
    viewer_here,
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
    person, entries = asyncio.run(_history(line, data, actor, leaderboard=leaderboard, limit=limit))
    if as_json:
        line.out.out(dumps([history_json(entry) for entry in entries]), highlight=False)
    else:
        draw(history_report(person.name, entries), line.out)


async def _history(
    line: CommandLine, data: Path | None, actor: str | None, *, leaderboard: str | None, limit: int
) -> tuple[Person, tuple[HistoryEntry, ...]]:
    async with acting(line, data, actor, enters=False) as (podium, person):
        viewer = viewer_here(person.id)
        return person, await past(podium.store, viewer, leaderboard, limit=limit)
