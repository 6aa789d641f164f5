"""`podium competition`: show, close, extend, export and delete competitions."""

import asyncio
import re
from contextlib import ExitStack, aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import datasets
from bot.cli.context import Actor, AsJson, CommandLine, DataFolder, ServerUrl, Where, command_line
from bot.cli.json_output import Json, competition_json
from bot.domain.api.export import ExportCompetition, ExportEnd, ExportHead, ExportRows
from bot.domain.errors import SetupError
from bot.domain.times import parse_deadline
from bot.reports.competition import TABLES, competition_report, competitions_report, dates_line

GROUP = "Show, close, extend, export and delete competitions."

_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

Name = Annotated[str, typer.Argument(help="Competition name")]


def show(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Competition name (default: list all of them)")
    ] = None,
    *,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show a competition's boards and overall ranking, or the list of competitions."""
    line = command_line(ctx)
    asyncio.run(_show(line, Where(data, server), name, as_json=as_json))


async def _show(line: CommandLine, where: Where, name: str | None, *, as_json: bool) -> None:
    now = datetime.now(UTC)
    async with line.client_for_viewer(where) as client:
        if name is None:
            found = await client.competitions()
            body: list[Json] = [competition_json(each) for each in found]
            line.answer(competitions_report(found, now), body, as_json=as_json)
            return
        standings = await client.competition(name)
        ranked = competition_json(standings.competition, standings)
        line.answer(competition_report(standings, now), ranked, as_json=as_json)


def close(
    ctx: typer.Context,
    name: Name,
    *,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Close every open board of your competition now."""
    asyncio.run(_close(command_line(ctx), Where(data, server, actor), name, as_json=as_json))


async def _close(line: CommandLine, where: Where, name: str, *, as_json: bool) -> None:
    async with line.client_for_person(where) as client:
        closed = await client.close_competition(name)
    line.answer(f"{closed.name} is closed", competition_json(closed), as_json=as_json)


def extend(
    ctx: typer.Context,
    name: Name,
    deadline: Annotated[str, typer.Argument(help="YYYY-MM-DD[ HH:MM][ zone]; default zone: UTC")],
    *,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Extend your competition: boards that close before this date close then instead."""
    line, where = command_line(ctx), Where(data, server, actor)
    asyncio.run(_extend(line, where, (name, parse_deadline(deadline)), as_json=as_json))


async def _extend(
    line: CommandLine, where: Where, change: tuple[str, datetime], *, as_json: bool
) -> None:
    async with line.client_for_person(where) as client:
        extended = await client.extend_competition(*change)
    words = f"{extended.name}: {dates_line(extended, datetime.now(UTC))}"
    line.answer(words, competition_json(extended), as_json=as_json)


def delete(
    ctx: typer.Context,
    name: Name,
    *,
    reason: Annotated[str, typer.Option(help="Reason, kept in the audit log")] = "",
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Delete your competition; its boards stay, with all their submissions and scores."""
    line, where = command_line(ctx), Where(data, server, actor)
    asyncio.run(_delete(line, where, (name, reason), as_json=as_json))


async def _delete(
    line: CommandLine, where: Where, deletion: tuple[str, str], *, as_json: bool
) -> None:
    async with line.client_for_person(where) as client:
        found = (await client.competition(deletion[0])).competition
        await client.delete_competition(*deletion)
    boards = ", ".join(each.name for each in found.boards)
    words = f"{found.name} is deleted; its boards stay: {boards}"
    line.answer(words, competition_json(found), as_json=as_json)


def export(
    ctx: typer.Context,
    name: Name,
    out: Annotated[
        Path, typer.Option("--out", help="Output folder; must not exist", metavar="DIR")
    ],
    *,
    form: datasets.FormatOption = datasets.DataFormat.PARQUET,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Export your competition to a folder: its overall ranking, and a folder for each board."""
    line = command_line(ctx)
    datasets.require_format(form)
    boards = asyncio.run(_export(line, Where(data, server), name, (out, form)))
    words = f"{out}: the overall ranking, and {len(boards)} boards: {', '.join(boards)}"
    line.answer(words, {"folder": str(out), "boards": boards}, as_json=as_json)


async def _export(
    line: CommandLine, where: Where, name: str, options: tuple[Path, datasets.DataFormat]
) -> list[str]:
    out, form = options
    boards: list[str] = []
    async with (
        line.client_for_person(where) as client,
        aclosing(client.export_competition(name)) as pieces,
    ):
        head = await anext(pieces)  # fails for a wrong name, before the folder is created
        if not isinstance(head, ExportCompetition):
            raise TypeError(f"an export began with {head.kind}")
        with datasets.complete_folder(out) as folder, ExitStack() as stack:
            put = stack.enter_context(datasets.tables_in(folder, TABLES, form))
            async for piece in pieces:
                match piece:
                    case ExportRows():
                        put(piece)
                    case ExportHead():
                        board_folder = folder / _folder_name(piece.board)
                        board_folder.mkdir()
                        await datasets.write_board(piece, pieces, board_folder, form)
                        boards.append(piece.board)
                    case ExportEnd():
                        break
                    case _:
                        pass
    return boards


def _folder_name(board: str) -> str:
    """Return a board's name; SetupError if it is no plain name, because a server may send `..`."""
    if not _FOLDER.fullmatch(board):
        raise SetupError(f"the server sent a board name that cannot name a folder: {board[:80]!r}")
    return board
