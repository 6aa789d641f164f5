"""`podium doctor`: what is present, what is missing, and how to get it."""

import asyncio

import typer

from bot.app.context import Requirement
from bot.cli.context import AsJson, DataFolder, command_line
from bot.cli.draw import draw
from bot.cli.errors import ExitCode
from bot.cli.json_output import dumps
from bot.reports.blocks import Report, Text, Tone


def doctor(ctx: typer.Context, *, data: DataFolder = None, as_json: AsJson = False) -> int:
    """Check requirements and show how to fix problems; exit code 3 if Podium cannot run."""
    line = command_line(ctx)
    found = asyncio.run(line.installation.at(data).requirements())
    if as_json:
        shapes = [
            {
                "name": each.name,
                "found": each.found,
                "optional": each.optional,
                "detail": each.detail,
                "remedy": each.remedy,
            }
            for each in found
        ]
        line.out.out(dumps(shapes), highlight=False)
    else:
        draw(Report("this machine", tuple(_line(each) for each in found)), line.out)
    needed = [each for each in found if not each.found and not each.optional]
    return ExitCode.OURS if needed else ExitCode.PASSED


def _line(requirement: Requirement) -> Text:
    if requirement.found:
        return Text(f"ok       {requirement.name}: {requirement.detail}", Tone.GOOD)
    mark = "optional" if requirement.optional else "MISSING "
    tone = Tone.QUIET if requirement.optional else Tone.BAD
    remedy = f"; {requirement.remedy}" if requirement.remedy else ""
    return Text(f"{mark} {requirement.name}: {requirement.detail}{remedy}", tone)
