"""`podium show`: a board's standings, a submission's report, or the boards there are."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.context import (
    AsJson,
    CommandLine,
    DataFolder,
    ServerUrl,
    Where,
    client_for_viewer,
    command_line,
)
from bot.cli.draw import draw
from bot.cli.files import save as save_files
from bot.cli.files import saved_line
from bot.cli.json_output import Json, dumps, standings_json, status_json
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.records import StoredFile
from bot.domain.times import show_deadline
from bot.reports.blocks import Column, Report, Table, Text, Tone
from bot.reports.standings import standings_report
from bot.reports.submission import status_report
from runners.contract.files import EvaluationFile

if TYPE_CHECKING:
    from bot.cli.client import Client

_BOARD_COLUMNS = (Column("board"), Column("GPU types"), Column("deadline"))


@dataclass(frozen=True, slots=True)
class _Wish:
    target: str | None
    gpus: tuple[str, ...]
    version: int | None
    save: Path | None


def show(
    ctx: typer.Context,
    target: Annotated[str | None, typer.Argument(help="Board name or submission number")] = None,
    *,
    gpu: Annotated[
        list[str] | None, typer.Option(help="Show only this GPU type; can be repeated")
    ] = None,
    version: Annotated[
        int | None,
        typer.Option("--task-version", min=1, help="Task version (default: the current one)"),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Save a profiled submission's reports to this folder")
    ] = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show a board's standings, a submission's result, or the list of boards."""
    line = command_line(ctx)
    gpus = tuple(dict.fromkeys(name for each in gpu or () for name in each.split(",") if name))
    reports, shape = asyncio.run(
        _show(line, Where(data, server), _Wish(target, gpus, version, save))
    )
    if as_json:
        line.out.out(dumps(shape), highlight=False)
        return
    for number, report in enumerate(reports):
        if number > 0:
            line.out.out("", highlight=False)
        draw(report, line.out)


async def _show(
    line: CommandLine, where: Where, wish: _Wish
) -> tuple[list[Report], list[Json] | Json]:
    async with client_for_viewer(line, where) as client:
        number = (wish.target or "").removeprefix("#")
        if number.isascii() and number.isdecimal() and len(number) < 19:
            return await _submission(line, client, SubmissionId(int(number)), wish.save)
        if wish.save is not None:
            raise UserError(
                "nothing-to-save",
                "--save needs a submission number, as in `podium show 17 --save DIR`",
            )
        if wish.target is not None:
            leaderboards = [
                each
                for gpu in wish.gpus or (None,)
                for each in await client.standings(wish.target, gpu, wish.version)
            ]
            shapes = [standings_json(each) for each in leaderboards]
            return [standings_report(each) for each in leaderboards], shapes
        return await _boards(client)


async def _submission(
    line: CommandLine, client: "Client", number: SubmissionId, save: Path | None
) -> tuple[list[Report], Json]:
    found = await client.status(number)
    if save is not None:
        files = await client.files(number)
        line.say(saved_line(save_files(_named(number, files), save)))
    return [status_report(found)], status_json(found)


def _named(
    submission: SubmissionId, files: Sequence[StoredFile]
) -> Iterator[tuple[str, EvaluationFile]]:
    for each in files:
        yield f"{submission}-{each.gpu}-{each.file.name}", each.file


async def _boards(client: "Client") -> tuple[list[Report], list[Json]]:
    boards = await client.boards()
    if not boards:
        words = "none yet: publish one with `podium task publish DIR`"
        return [Report("leaderboards", (Text(words, Tone.QUIET),))], []
    until = [None if each.deadline is None else show_deadline(each.deadline) for each in boards]
    rows = tuple(
        (board.name, ", ".join(board.gpus), deadline or "none")
        for board, deadline in zip(boards, until, strict=True)
    )
    shapes: list[Json] = [
        {
            "board": board.name,
            "gpus": list(board.gpus),
            "deadline": None if board.deadline is None else board.deadline.isoformat(),
        }
        for board in boards
    ]
    return [Report("leaderboards", (Table("boards", _BOARD_COLUMNS, rows),))], shapes
