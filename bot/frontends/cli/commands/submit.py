"""`podium submit`: hands in a file and waits for its result."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.domain.errors import SetupError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.domain.submission import SubmissionRequest
from bot.frontends.cli.context import (
    Actor,
    AsJson,
    CommandLine,
    DataFolder,
    actor_name,
    command_line,
    read_submission,
)
from bot.frontends.cli.draw import draw
from bot.frontends.cli.failures import ExitCode
from bot.frontends.cli.following import follow
from bot.frontends.cli.installation import Installation
from bot.frontends.cli.progress import ProgressLines
from bot.frontends.cli.shapes import dumps, status_json
from bot.reports.status import status_report
from bot.services.status import SubmissionStatus, status
from bot.services.submit import submit as hand_in
from runners.contract.task import Mode
from runners.contract.verdict import Verdict

_LOOK_S = 2.0
_ABSENCES = 5
"""So many looks in a row without a `podium up`: enough for one that was killed to be restarted."""


@dataclass(frozen=True, slots=True)
class _Order:
    actor: str
    file_name: str
    content: bytes
    mode: Mode
    board: str | None
    gpus: tuple[str, ...]
    wait: bool


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(submit)


def submit(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="The kernel to hand in")],
    *,
    leaderboard: Annotated[str | None, typer.Option(help="Else the file's heading says")] = None,
    gpu: Annotated[list[str] | None, typer.Option(help="GPU type; may be repeated")] = None,
    mode: Annotated[Mode, typer.Option(help="Only ranked runs count")] = Mode.RANKED,
    wait: Annotated[bool, typer.Option(help="Stay until it is judged")] = True,
    actor: Actor = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> int:
    """Hand in a kernel; without a running `podium up`, judge it here and now."""
    line = command_line(ctx)
    content = read_submission(file)
    names = tuple(name for each in gpu or () for name in each.split(",") if name)
    order = _Order(actor_name(actor), file.name, content, mode, leaderboard, names, wait)
    ended = asyncio.run(_submit(line, data, order))
    if as_json:
        line.out.out(dumps(status_json(ended)), highlight=False)
    elif wait:
        draw(status_report(ended), line.out)
    else:
        line.out.out(f"submission #{ended.submission.id} is queued", highlight=False)
    return exit_code(ended) if wait else ExitCode.PASSED


async def _submit(line: CommandLine, data: Path | None, order: _Order) -> SubmissionStatus:
    installation = line.installation.at(data)
    async with AsyncExitStack() as stack:
        podium = await stack.enter_async_context(installation.open())
        person = await podium.store.people.ensure(f"local:{order.actor}", order.actor)
        request = SubmissionRequest(
            person.id, order.file_name, order.content, order.mode, order.board, order.gpus
        )
        submission = await hand_in(podium.store, podium.clock, request)
        if not order.wait:
            if not podium.served:
                line.say("nobody works through this queue yet: start `podium up`")
            return await status(podium.store, submission.id)
        stack.enter_context(_parting_words(line, submission.id, served=podium.served))
        if not podium.served:
            line.say("no `podium up` runs here, so this command judges it itself")
            await stack.enter_async_context(installation.working_in_turn(podium))
        with ProgressLines(line.err) as lines:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(_desertion(installation)) if podium.served else None
                ended = await follow(podium.store, submission.id, lines, f"#{submission.id}")
                if watch is not None:
                    watch.cancel()
            return ended


async def _desertion(installation: Installation) -> None:
    """SetupError once the `podium up` has ended and does not come back in a while."""
    absences = 0
    while absences < _ABSENCES:
        await asyncio.sleep(_LOOK_S)
        absences = 0 if installation.is_served() else absences + 1
    raise SetupError("the `podium up` that was to judge it has ended; start it again")


@contextmanager
def _parting_words(line: CommandLine, number: SubmissionId, *, served: bool) -> Iterator[None]:
    """Says what becomes of a stored submission which this command does not see to its end."""
    try:
        yield
    except BaseException:
        where = "stays with `podium up`" if served else "waits for `podium up`"
        line.say(
            f"submission #{number} is stored and {where}; "
            f"`podium show {number}` shows it, `podium cancel {number}` stops it"
        )
        raise


def exit_code(ended: SubmissionStatus) -> ExitCode:
    """Passed when every job passed; ours when a job was given up."""
    if any(each.job.state is JobState.FAILED for each in ended.jobs):
        return ExitCode.OURS
    verdicts = [each.evaluation.verdict for each in ended.jobs if each.evaluation is not None]
    passed = len(verdicts) == len(ended.jobs) and set(verdicts) == {Verdict.PASSED}
    return ExitCode.PASSED if passed else ExitCode.VERDICT
