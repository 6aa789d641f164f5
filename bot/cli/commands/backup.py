"""`podium backup`: the whole database in one file, while everything goes on."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import STREAM, AsJson, DataFolder, command_line
from bot.cli.json_output import backup_json, dumps
from bot.domain.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(backup)


def backup(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(help="A new file, or - for stdout; it will hold every source and result"),
    ],
    *,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write the database into a file, also while `podium up` runs; `podium restore` reads it."""
    line = command_line(ctx)
    streamed = file == STREAM
    if streamed and (as_json or sys.stdout.isatty()):
        raise UserError("usage", "`backup -` writes the backup to stdout: send it into a file")
    target = sys.stdout.buffer if streamed else file
    made = asyncio.run(line.installation.at(data).backup(target))
    if as_json:
        line.out.out(dumps(backup_json(made)), highlight=False)
        return
    rows = sum(made.rows.values())
    words = f"{file}: {rows} rows of {len(made.rows)} tables; keep it as secret as the database"
    if streamed:
        line.say(words)
    else:
        line.out.out(words, highlight=False)
