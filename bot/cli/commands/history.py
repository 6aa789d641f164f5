"""`podium history`: a person's submissions."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from bot.cli.context import (
    Actor,
    AsJson,
    CommandLine,
    DataFolder,
    ServerUrl,
    Where,
    client_for_person,
    command_line,
)
from bot.cli.draw import draw
from bot.cli.json_output import dumps, history_json
from bot.domain.records import HistoryEntry
from bot.reports.history import history_report


def history(
    ctx: typer.Context,
    *,
    leaderboard: Annotated[str | None, typer.Option(help="Show only this board")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of submissions")] = 50,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """List your submissions, newest first."""
    line = command_line(ctx)
    name, entries = asyncio.run(_history(line, Where(data, server, actor), leaderboard, limit))
    if as_json:
        line.out.out(dumps([history_json(entry) for entry in entries]), highlight=False)
    else:
        draw(history_report(name, entries), line.out)


async def _history(
    line: CommandLine, where: Where, board: str | None, limit: int
) -> tuple[str, Sequence[HistoryEntry]]:
    async with client_for_person(line, where, enters=False) as client:
        return await client.whoami(), await client.history(board, limit)
