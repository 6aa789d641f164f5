"""`podium backup`, `podium restore` and `podium migrate`."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import STREAM, AsJson, DataFolder, command_line
from bot.cli.json_output import backup_json, dumps
from bot.domain.errors import UserError


def backup(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(help="New file, or - for stdout; contains all sources and results"),
    ],
    *,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Back up the database to a file, even while `podium up` is running."""
    line = command_line(ctx)
    streamed = file == STREAM
    if streamed and (as_json or sys.stdout.isatty()):
        raise UserError("usage", "`backup -` writes the backup to stdout; redirect it to a file")
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


def restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Backup file, or - for stdin")],
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Delete everything in the database first")
    ] = False,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty database; nothing is changed if it fails."""
    line = command_line(ctx)
    source = sys.stdin.buffer if file == STREAM else file
    made = asyncio.run(line.installation.at(data).restore(source, force=force))
    if as_json:
        line.out.out(dumps(backup_json(made)), highlight=False)
        return
    rows = sum(made.rows.values())
    when = made.made_at.strftime("%Y-%m-%d %H:%M UTC")
    line.out.out(f"restored {rows} rows as they were at {when}", highlight=False)


def migrate(ctx: typer.Context, *, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Apply pending database migrations."""
    line = command_line(ctx)
    applied = asyncio.run(line.installation.at(data).migrate())
    if as_json:
        line.out.out(dumps({"applied": list(applied)}), highlight=False)
    else:
        numbers = ", ".join(str(number) for number in applied)
        line.out.out(
            f"applied: {numbers or 'nothing, the database is up to date'}", highlight=False
        )
