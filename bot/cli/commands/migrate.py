"""`podium migrate`: brings the database up to date."""

import asyncio

import typer

from bot.cli.context import AsJson, DataFolder, command_line
from bot.cli.json_output import dumps


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(migrate)


def migrate(ctx: typer.Context, *, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Apply the migrations which the database lacks."""
    line = command_line(ctx)
    applied = asyncio.run(line.installation.at(data).migrate())
    if as_json:
        line.out.out(dumps({"applied": list(applied)}), highlight=False)
    else:
        numbers = ", ".join(str(number) for number in applied)
        line.out.out(f"applied: {numbers or 'nothing, all was there'}", highlight=False)
