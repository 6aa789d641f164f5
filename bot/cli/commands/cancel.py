"""`podium cancel`: stops one's own submission."""

import asyncio
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
from bot.cli.json_output import dumps
from bot.domain.ids import SubmissionId


def cancel(
    ctx: typer.Context,
    submission: Annotated[int, typer.Argument(min=1, help="Submission number")],
    *,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Cancel one of your submissions, queued or running."""
    line = command_line(ctx)
    jobs, ended = asyncio.run(_cancel(line, Where(data, server, actor), SubmissionId(submission)))
    if as_json:
        line.out.out(dumps({"submission": submission, "jobs": jobs}), highlight=False)
    elif jobs:
        what = "1 job is" if jobs == 1 else f"{jobs} jobs are"
        line.out.out(f"submission #{submission}: {what} being stopped", highlight=False)
    else:
        what = "has already ended" if ended else "is already being stopped"
        line.out.out(f"submission #{submission} {what}", highlight=False)


async def _cancel(line: CommandLine, where: Where, submission: SubmissionId) -> tuple[int, bool]:
    """Return how many jobs are stopped, and whether the submission has ended."""
    async with client_for_person(line, where, enters=False) as client:
        jobs = await client.cancel(submission)
        return jobs, (await client.status(submission)).is_final
