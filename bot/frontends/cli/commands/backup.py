"""`podium backup`: the whole database in one file, while everything goes on."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from bot.frontends.cli.context import AsJson, DataFolder, command_line
from bot.frontends.cli.shapes import backup_json, dumps


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(backup)


def backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A new file; it will hold every source and result")],
    *,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write the database into a file, also while `podium up` runs; `podium restore` reads it."""
    line = command_line(ctx)
    made = asyncio.run(line.installation.at(data).backup(file))
    if as_json:
        line.out.out(dumps(backup_json(made)), highlight=False)
        return
    rows = sum(made.rows.values())
    words = f"{file}: {rows} rows of {len(made.rows)} tables; keep it as secret as the database"
    line.out.out(words, highlight=False)
