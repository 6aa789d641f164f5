"""`podium restore`: the database as a backup has it."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import STREAM, AsJson, DataFolder, command_line
from bot.cli.json_output import backup_json, dumps


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(restore)


def restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file that `podium backup` wrote, or - for stdin")],
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Remove everything that the database holds now")
    ] = False,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup into an empty database: all of it, or after a failure nothing."""
    line = command_line(ctx)
    source = sys.stdin.buffer if file == STREAM else file
    made = asyncio.run(line.installation.at(data).restore(source, force=force))
    if as_json:
        line.out.out(dumps(backup_json(made)), highlight=False)
        return
    rows = sum(made.rows.values())
    when = made.made_at.strftime("%Y-%m-%d %H:%M UTC")
    line.out.out(f"restored {rows} rows as they were at {when}", highlight=False)
