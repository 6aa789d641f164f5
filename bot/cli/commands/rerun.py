"""`podium rerun`: submits an earlier submission again."""

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
from bot.cli.follow import print_result, wait_for_result
from bot.domain.ids import SubmissionId
from bot.domain.status import SubmissionStatus
from runners.contract.task import Mode


def rerun(
    ctx: typer.Context,
    submission: Annotated[int, typer.Argument(min=1, help="Submission number")],
    *,
    mode: Annotated[Mode | None, typer.Option(help="Mode (default: the original mode)")] = None,
    wait: Annotated[bool, typer.Option(help="Wait for the result")] = True,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> int:
    """Submit the source of one of your submissions again."""
    line = command_line(ctx)
    earlier, where = SubmissionId(submission), Where(data, server, actor)
    ended = asyncio.run(_rerun(line, where, earlier, mode, wait=wait))
    return print_result(line, ended, wait=wait, as_json=as_json)


async def _rerun(
    line: CommandLine, where: Where, earlier: SubmissionId, mode: Mode | None, *, wait: bool
) -> SubmissionStatus:
    async with client_for_person(line, where, enters=False) as client:
        return await wait_for_result(line, client, await client.rerun(earlier, mode), wait=wait)
