"""`podium doctor`, `backup`, `restore` and `migrate`: the data and requirements of this machine."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from bot.app.context import Requirement
from bot.cli.context import AsJson, DataFolder, command_line
from bot.cli.errors import ExitCode
from bot.cli.files import STREAM
from bot.cli.json_output import backup_json
from bot.domain.errors import UserError
from bot.reports.blocks import Report, Text, Tone


def doctor(ctx: typer.Context, *, data: DataFolder = None, as_json: AsJson = False) -> int:
    """Check requirements and show how to fix problems; exit code 3 if Podium cannot run."""
    line = command_line(ctx)
    found = asyncio.run(line.installation.at(data).requirements())
    body = [
        {
            "name": each.name,
            "found": each.found,
            "optional": each.optional,
            "detail": each.detail,
            "remedy": each.remedy,
        }
        for each in found
    ]
    report = Report("this machine", tuple(_line(each) for each in found))
    line.answer(report, body, as_json=as_json)
    needed = [each for each in found if not each.found and not each.optional]
    return ExitCode.INTERNAL if needed else ExitCode.PASSED


def _line(requirement: Requirement) -> Text:
    if requirement.found:
        return Text(f"ok       {requirement.name}: {requirement.detail}", Tone.GOOD)
    mark = "optional" if requirement.optional else "MISSING "
    tone = Tone.QUIET if requirement.optional else Tone.BAD
    remedy = f"; {requirement.remedy}" if requirement.remedy else ""
    return Text(f"{mark} {requirement.name}: {requirement.detail}{remedy}", tone)


def backup(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="New file, or - for stdout; contains all sources and results")
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
    rows = sum(made.rows.values())
    name = "stdout" if streamed else file
    words = f"{name}: {rows} rows of {len(made.rows)} tables; keep it as secret as the database"
    if streamed:
        line.say(words)
    else:
        line.answer(words, backup_json(made), as_json=as_json)


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
    rows = sum(made.rows.values())
    when = made.made_at.strftime("%Y-%m-%d %H:%M UTC")
    words = f"restored {rows} rows as they were at {when}"
    line.answer(words, backup_json(made), as_json=as_json)


def migrate(ctx: typer.Context, *, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Apply pending database migrations."""
    line = command_line(ctx)
    applied = asyncio.run(line.installation.at(data).migrate())
    numbers = ", ".join(str(number) for number in applied)
    words = f"applied: {numbers or 'nothing, the database is up to date'}"
    line.answer(words, {"applied": list(applied)}, as_json=as_json)
