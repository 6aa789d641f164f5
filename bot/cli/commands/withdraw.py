"""`podium withdraw`: takes one's own submission off its board."""

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


def withdraw(
    ctx: typer.Context,
    submission: Annotated[int, typer.Argument(min=1, help="Submission number")],
    *,
    reason: Annotated[str, typer.Option(help="Reason, shown next to the result")] = "",
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Permanently remove one of your submissions from its board; its result is kept."""
    line = command_line(ctx)
    asyncio.run(_withdraw(line, Where(data, server, actor), SubmissionId(submission), reason))
    if as_json:
        line.out.out(dumps({"submission": submission, "withdrawn": True}), highlight=False)
    else:
        line.out.out(f"submission #{submission} is off its board; its result stays")


async def _withdraw(line: CommandLine, where: Where, submission: SubmissionId, reason: str) -> None:
    async with client_for_person(line, where, enters=False) as client:
        await client.withdraw(submission, reason)
