"""`podium submit`, `rerun`, `history`, `cancel` and `withdraw`: the user's own submissions."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import Actor, AsJson, CommandLine, DataFolder, ServerUrl, Where, command_line
from bot.cli.files import STREAM, read_submission
from bot.cli.follow import print_result, wait_for_result
from bot.cli.json_output import history_json
from bot.domain.ids import SubmissionId
from bot.domain.records import HistoryEntry
from bot.domain.status import SubmissionStatus
from bot.reports.history import history_report
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class _SubmitOptions:
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
    file_name = name or ("submission.py" if file == STREAM else file.name)
    options = _SubmitOptions(file_name, content, mode, leaderboard, names)
    status = asyncio.run(_submit(line, Where(data, server, actor), options, wait=wait))
    return print_result(line, status, wait=wait, as_json=as_json)


async def _submit(
    line: CommandLine, where: Where, options: _SubmitOptions, *, wait: bool
) -> SubmissionStatus:
    async with line.client_for_person(where) as client:
        number = await client.submit(
            options.file_name, options.content, options.mode, board=options.board, gpus=options.gpus
        )
        return await wait_for_result(line, client, number, wait=wait)


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
    status = asyncio.run(_rerun(line, where, earlier, mode, wait=wait))
    return print_result(line, status, wait=wait, as_json=as_json)


async def _rerun(
    line: CommandLine, where: Where, earlier: SubmissionId, mode: Mode | None, *, wait: bool
) -> SubmissionStatus:
    async with line.client_for_person(where, may_be_new=False) as client:
        return await wait_for_result(line, client, await client.rerun(earlier, mode), wait=wait)


def history(
    ctx: typer.Context,
    *,
    leaderboard: Annotated[str | None, typer.Option(help="Show only this board")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of submissions")] = 50,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """List your submissions, newest first."""
    line = command_line(ctx)
    name, entries = asyncio.run(_history(line, Where(data, server, actor), leaderboard, limit))
    body = [history_json(entry) for entry in entries]
    line.answer(history_report(name, entries), body, as_json=as_json)


async def _history(
    line: CommandLine, where: Where, board: str | None, limit: int
) -> tuple[str, Sequence[HistoryEntry]]:
    async with line.client_for_person(where, may_be_new=False) as client:
        return await client.whoami(), await client.history(board, limit)


def cancel(
    ctx: typer.Context,
    submission: Annotated[int, typer.Argument(min=1, help="Submission number")],
    *,
    reason: Annotated[
        str | None, typer.Option(help="As an admin, cancel anyone's; its owner reads the reason")
    ] = None,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Cancel one of your submissions, queued or running."""
    line, where = command_line(ctx), Where(data, server, actor)
    jobs, ended = asyncio.run(_cancel(line, where, SubmissionId(submission), reason))
    if jobs:
        what = f": {'1 job is' if jobs == 1 else f'{jobs} jobs are'} being stopped"
    else:
        what = " has already ended" if ended else " is already being stopped"
    body = {"submission": submission, "jobs": jobs}
    line.answer(f"submission #{submission}{what}", body, as_json=as_json)


async def _cancel(
    line: CommandLine, where: Where, submission: SubmissionId, reason: str | None
) -> tuple[int, bool]:
    """Return how many jobs are stopped, and whether the submission has ended."""
    async with line.client_for_person(where, may_be_new=reason is not None) as client:
        jobs = await client.cancel(submission, reason)
        return jobs, (await client.status(submission)).is_final


def withdraw(
    ctx: typer.Context,
    submission: Annotated[int, typer.Argument(min=1, help="Submission number")],
    *,
    reason: Annotated[str, typer.Option(help="Reason, shown with the result")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first")] = False,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Permanently remove one of your submissions from its board; its result is kept.

    At a terminal, it asks first.
    """
    line = command_line(ctx)
    if sys.stdin.isatty() and not yes:
        question = f"Take submission #{submission} off its board for good? Its result stays."
        typer.confirm(question, abort=True, err=True)
    asyncio.run(_withdraw(line, Where(data, server, actor), SubmissionId(submission), reason))
    words = f"submission #{submission} is off its board; its result stays"
    line.answer(words, {"submission": submission, "withdrawn": True}, as_json=as_json)


async def _withdraw(line: CommandLine, where: Where, submission: SubmissionId, reason: str) -> None:
    async with line.client_for_person(where, may_be_new=False) as client:
        await client.withdraw(submission, reason)
