"""`podium submit`: submits a file and waits for its result."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import (
    STREAM,
    Actor,
    AsJson,
    CommandLine,
    DataFolder,
    ServerUrl,
    Where,
    client_for_person,
    command_line,
    read_submission,
)
from bot.cli.follow import print_result, wait_for_result
from bot.domain.status import SubmissionStatus
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class _Order:
    file_name: str
    content: bytes
    mode: Mode
    board: str | None
    gpus: tuple[str, ...]


def submit(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Kernel file, or - for stdin")],
    *,
    name: Annotated[
        str | None,
        typer.Option(help="File name shown on the board; needed for stdin unless it is Python"),
    ] = None,
    leaderboard: Annotated[
        str | None, typer.Option(help="Board name (default: from the file's header)")
    ] = None,
    gpu: Annotated[list[str] | None, typer.Option(help="GPU type; can be repeated")] = None,
    mode: Annotated[
        Mode, typer.Option(help="Evaluation mode; only ranked runs appear on the board")
    ] = Mode.RANKED,
    wait: Annotated[bool, typer.Option(help="Wait for the result")] = True,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> int:
    """Submit a kernel to a board."""
    line = command_line(ctx)
    content = read_submission(file)
    names = tuple(name for each in gpu or () for name in each.split(",") if name)
    called = name or ("submission.py" if file == STREAM else file.name)
    order = _Order(called, content, mode, leaderboard, names)
    ended = asyncio.run(_submit(line, Where(data, server, actor), order, wait=wait))
    return print_result(line, ended, wait=wait, as_json=as_json)


async def _submit(
    line: CommandLine, where: Where, order: _Order, *, wait: bool
) -> SubmissionStatus:
    async with client_for_person(line, where) as client:
        number = await client.submit(
            order.file_name, order.content, order.mode, board=order.board, gpus=order.gpus
        )
        return await wait_for_result(line, client, number, wait=wait)
