"""`podium final`: compares the first entries of a board, each with the one before."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.context import Actor, AsJson, CommandLine, DataFolder, ServerUrl, Where, command_line
from bot.cli.json_output import final_json
from bot.domain.errors import UserError
from bot.domain.finals import DEFAULT_TOP, LEAST_TOP, MOST_TOP, Final, FinalRequest
from bot.reports.confirmations import final_line, finals_report

if TYPE_CHECKING:
    from bot.cli.client import Client

POLL_S = 2.0
"""Seconds between two looks at a running final."""


@dataclass(frozen=True, slots=True)
class _Options:
    request: FinalRequest
    reason: str
    show: bool
    cancel: bool
    wait: bool


def final(
    ctx: typer.Context,
    board: Annotated[str, typer.Argument(help="Board name")],
    *,
    top: Annotated[
        int, typer.Option(min=LEAST_TOP, max=MOST_TOP, help="How many entries to compare")
    ] = DEFAULT_TOP,
    gpu: Annotated[str | None, typer.Option(help="Only this GPU type (default: each)")] = None,
    show: Annotated[bool, typer.Option("--show", help="Only show the newest final")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the running final")] = False,
    wait: Annotated[bool, typer.Option(help="Wait for the table")] = True,
    reason: Annotated[str, typer.Option(help="Reason, kept in the audit log")] = "",
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Compare a board's first entries, each with the one before, and publish the table."""
    if show and cancel:
        raise UserError("usage", "--show and --cancel cannot be combined; leave one of them out")
    options = _Options(FinalRequest(board, gpu, top), reason, show, cancel, wait)
    where = Where(data, server, actor)
    asyncio.run(_final(command_line(ctx), where, options, as_json=as_json))


async def _final(line: CommandLine, where: Where, options: _Options, *, as_json: bool) -> None:
    board = options.request.board
    async with line.client_for_person(where) as client:
        if options.cancel:
            cancelled = await client.cancel_final(board, options.reason)
            words = f"the final of {board} is cancelled; its standings stay as they are"
            line.answer(words, {"board": board, "cancelled": cancelled}, as_json=as_json)
            return
        if options.show:
            found = await client.finals(board)
        else:
            found = await client.start_final(options.request, options.reason)
            if options.wait:
                async with client.judging(line.say):
                    found = await _ended(line, client, board, {each.gpu for each in found})
    body = {"board": board, "finals": [final_json(each) for each in found]}
    line.answer(finals_report(board, found), body, as_json=as_json)


async def _ended(
    line: CommandLine, client: "Client", board: str, gpus: set[str]
) -> Sequence[Final]:
    """Print the progress of the finals until all have ended; return them."""
    line.say(
        f"the final of {board} has begun; it goes on if this command ends, and "
        f"`podium final {board} --show{client.suffix}` shows it"
    )
    said: dict[str, str] = {}
    while True:
        found = [each for each in await client.finals(board) if each.gpu in gpus]
        for each in found:
            words = final_line(each)
            if said.get(each.gpu) != words:
                said[each.gpu] = words
                line.say(words)
        if all(each.rows is not None for each in found):
            return found
        await asyncio.sleep(POLL_S)
