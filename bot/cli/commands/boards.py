"""`podium show`, `template`, `export` and `final`: read boards and submissions, compare entries.

`show` prints a board's standings, a submission's report, or the list of boards. `export` writes a
board with its sources and every measurement, for researchers. `final` compares a board's first
entries, each with the one before.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import context, datasets
from bot.cli.context import AsJson, CommandLine, DataFolder, ServerUrl, Where, command_line
from bot.cli.files import save_files, saved_line
from bot.cli.json_output import Json, final_json, standings_json, status_json
from bot.domain.api.export import ExportHead
from bot.domain.errors import UserError
from bot.domain.finals import DEFAULT_TOP, LEAST_TOP, MOST_TOP, Final, FinalRequest
from bot.domain.ids import SubmissionId
from bot.domain.times import show_deadline
from bot.reports.blocks import Column, Report, Table, Text, Tone
from bot.reports.confirmations import final_line, finals_report
from bot.reports.standings import standings_report
from bot.reports.submission import status_report

if TYPE_CHECKING:
    from bot.cli.client import Client

_BOARD_COLUMNS = (Column("board"), Column("GPU types"), Column("deadline"))


@dataclass(frozen=True, slots=True)
class _ShowOptions:
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
    reports, body = asyncio.run(
        _show(line, Where(data, server), _ShowOptions(target, gpus, version, save))
    )
    line.answer(reports, body, as_json=as_json)


async def _show(
    line: CommandLine, where: Where, options: _ShowOptions
) -> tuple[list[Report], list[Json] | Json]:
    async with line.client_for_viewer(where) as client:
        number = (options.target or "").removeprefix("#")
        if number.isascii() and number.isdecimal() and len(number) < 19:
            return await _submission(line, client, SubmissionId(int(number)), options.save)
        if options.save is not None:
            raise UserError(
                "nothing-to-save",
                "--save needs a submission number, as in `podium show 17 --save DIR`",
            )
        if options.target is not None:
            leaderboards = [
                each
                for gpu in options.gpus or (None,)
                for each in await client.standings(options.target, gpu, options.version)
            ]
            bodies = [standings_json(each) for each in leaderboards]
            return [standings_report(each) for each in leaderboards], bodies
        return await _boards(client)


async def _submission(
    line: CommandLine, client: "Client", number: SubmissionId, save: Path | None
) -> tuple[list[Report], Json]:
    status = await client.status(number)
    if save is not None:
        files = await client.files(number)
        named = [(f"{number}-{each.gpu}-{each.file.name}", each.file) for each in files]
        line.say(saved_line(save_files(named, save)))
    return [status_report(status)], status_json(status)


async def _boards(client: "Client") -> tuple[list[Report], list[Json]]:
    boards = await client.boards()
    if not boards:
        words = "none yet: publish one with `podium task publish DIR`"
        return [Report("leaderboards", (Text(words, Tone.QUIET),))], []
    rows = tuple(
        (
            board.name,
            ", ".join(board.gpus),
            "none" if board.deadline is None else show_deadline(board.deadline),
        )
        for board in boards
    )
    bodies: list[Json] = [
        {
            "board": board.name,
            "gpus": list(board.gpus),
            "deadline": None if board.deadline is None else board.deadline.isoformat(),
        }
        for board in boards
    ]
    return [Report("leaderboards", (Table("boards", _BOARD_COLUMNS, rows),))], bodies


@dataclass(frozen=True, slots=True)
class _TemplateOptions:
    board: str
    lang: str | None
    file: Path


def template(
    ctx: typer.Context,
    board: Annotated[str, typer.Argument(help="Board name")],
    file: Annotated[Path, typer.Argument(help="Output file; must not exist")],
    *,
    lang: Annotated[
        str | None, typer.Option(help="Language of the template (default: the first one)")
    ] = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write a board's starter file, including the header that names the board."""
    line = command_line(ctx)
    suffix = asyncio.run(_template(line, Where(data, server), _TemplateOptions(board, lang, file)))
    words = f"wrote {file}; next: {context.program()} submit {file}{suffix}"
    line.answer(words, {"board": board, "file": str(file)}, as_json=as_json)


async def _template(line: CommandLine, where: Where, options: _TemplateOptions) -> str:
    """Write the file; return the option with which the next command uses the same server."""
    async with line.client_for_viewer(where) as client:
        _create(options.file, await client.template(options.board, options.lang))
        return client.suffix


def _create(file: Path, content: bytes) -> None:
    """Create the file; UserError when it exists, because it may be the user's own work."""
    try:
        with file.open("xb") as opened:
            opened.write(content)
    except FileExistsError:
        raise UserError("file-exists", f"{file} already exists; choose another name") from None
    except OSError as error:
        raise UserError(
            "cannot-write", f"{file}: cannot be written ({error.strerror}); choose another name"
        ) from error


def export(
    ctx: typer.Context,
    board: Annotated[str, typer.Argument(help="Board name")],
    out: Annotated[
        Path, typer.Option("--out", help="Output folder; must not exist", metavar="DIR")
    ],
    *,
    form: datasets.FormatOption = datasets.DataFormat.PARQUET,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Export a board to a folder: submissions, results, raw samples and sources."""
    line = command_line(ctx)
    datasets.require_format(form)
    submissions = asyncio.run(_export(line, Where(data, server), board, (out, form)))
    words = f"{out}: {submissions} submissions; README.md says what each column means"
    line.answer(words, {"folder": str(out), "submissions": submissions}, as_json=as_json)


async def _export(
    line: CommandLine, where: Where, board: str, options: tuple[Path, datasets.DataFormat]
) -> int:
    out, form = options
    async with line.client_for_person(where) as client, aclosing(client.export(board)) as pieces:
        head = await anext(pieces)  # fails for a wrong name, before the folder is created
        if not isinstance(head, ExportHead):
            raise TypeError(f"an export began with {head.kind}")
        with datasets.complete_folder(out) as folder:
            await datasets.write_board(head, pieces, folder, form)
        return head.submissions


POLL_S = 2.0
"""Seconds between two polls of a running final."""


@dataclass(frozen=True, slots=True)
class _FinalOptions:
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
    actor: context.Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Compare a board's first entries, each with the one before, and publish the table."""
    if show and cancel:
        raise UserError("usage", "--show and --cancel cannot be combined; leave one of them out")
    options = _FinalOptions(FinalRequest(board, gpu, top), reason, show, cancel, wait)
    where = Where(data, server, actor)
    asyncio.run(_final(command_line(ctx), where, options, as_json=as_json))


async def _final(line: CommandLine, where: Where, options: _FinalOptions, *, as_json: bool) -> None:
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
        f"the final of {board} has begun; it continues if this command ends, and "
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
