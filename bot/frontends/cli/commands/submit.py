"""`podium submit`: hands in a file and waits for its result."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.domain.errors import SetupError, StoreError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.domain.submission import SubmissionRequest
from bot.frontends.cli.context import (
    Actor,
    AsJson,
    CommandLine,
    DataFolder,
    acting,
    command_line,
    read_submission,
    viewer_here,
)
from bot.frontends.cli.draw import draw
from bot.frontends.cli.failures import ExitCode
from bot.frontends.cli.following import follow
from bot.frontends.cli.installation import Installation, OpenPodium
from bot.frontends.cli.progress import ProgressLines
from bot.frontends.cli.shapes import dumps, status_json
from bot.reports.status import status_report
from bot.services.status import SubmissionStatus, status
from bot.services.submit import submit as hand_in
from bot.services.unserved import unserved
from runners.contract.task import Mode
from runners.contract.verdict import Verdict

_LOOKS = 15
"""So often in the time of a lease it is looked whether anybody is there who could judge."""
_ABSENCES = 5
"""So many looks in a row without a judge: enough for one that was killed to be restarted."""


@dataclass(frozen=True, slots=True)
class _Order:
    actor: str | None
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
    """Hand in a kernel; without a running `podium up` or DATABASE_URL, judge it here and now."""
    line = command_line(ctx)
    content = read_submission(file)
    names = tuple(name for each in gpu or () for name in each.split(",") if name)
    order = _Order(actor, file.name, content, mode, leaderboard, names, wait)
    ended = asyncio.run(_submit(line, data, order))
    if as_json:
        line.out.out(dumps(status_json(ended)), highlight=False)
    elif wait:
        draw(status_report(ended), line.out)
    else:
        line.out.out(f"submission #{ended.submission.id} is queued", highlight=False)
    return exit_code(ended) if wait else ExitCode.PASSED


async def _submit(line: CommandLine, data: Path | None, order: _Order) -> SubmissionStatus:
    async with acting(line, data, order.actor) as (podium, person):
        request = SubmissionRequest(
            viewer_here(person.id),
            order.file_name,
            order.content,
            order.mode,
            order.board,
            order.gpus,
        )
        submission = await hand_in(podium.store, podium.clock, request)
        if order.wait:
            with _parting_words(line, submission.id, podium):
                return await _judged(line, line.installation.at(data), podium, submission.id)
        if not podium.served and not await podium.store.workers.alive():
            line.say(f"nobody works through this queue yet: start {_judge_of(podium)}")
        return await status(podium.store, submission.id)


async def _judged(
    line: CommandLine, installation: Installation, podium: OpenPodium, number: SubmissionId
) -> SubmissionStatus:
    """Waits for who judges it; on a data folder that nobody serves, this process does."""
    async with AsyncExitStack() as stack:
        if not podium.served and not podium.shared:
            line.say("no `podium up` runs here, so this command judges it itself")
            await stack.enter_async_context(installation.working_in_turn(podium))
        with ProgressLines(line.err) as lines:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(_desertion(installation, podium, number))
                ended = await follow(podium.store, number, lines, f"#{number}")
                watch.cancel()
        return ended


async def _desertion(installation: Installation, podium: OpenPodium, number: SubmissionId) -> None:
    """SetupError once nobody is there who could judge it, and nobody comes in a while."""
    absences = 0
    look_s = max(0.2, podium.lease_s / _LOOKS)
    while True:
        await asyncio.sleep(look_s)
        lack = await _lack(installation, podium, number)
        absences = 0 if lack is None else absences + 1
        if lack is not None and absences >= _ABSENCES:
            raise SetupError(lack)


async def _lack(installation: Installation, podium: OpenPodium, number: SubmissionId) -> str | None:
    """Why nobody would judge it as things are, and what to do; None when somebody will."""
    if podium.served and not installation.is_served():
        return "the `podium up` that was to judge it has ended; start it again"
    try:
        gpus = await unserved(podium.store, number)
    except StoreError:
        return None  # whoever follows it waits for the database, and knows for how long
    if not gpus:
        return None
    judge = _judge_of(podium)
    return f"nobody at work offers {', '.join(gpus)}; run {judge} on a machine that has it"


def _judge_of(podium: OpenPodium) -> str:
    return "`podium worker`" if podium.shared and not podium.served else "`podium up`"


@contextmanager
def _parting_words(line: CommandLine, number: SubmissionId, podium: OpenPodium) -> Iterator[None]:
    """Says what becomes of a stored submission which this command does not see to its end."""
    try:
        yield
    except BaseException:
        where = "stays with" if podium.served else "waits for"
        line.say(
            f"submission #{number} is stored and {where} {_judge_of(podium)}; "
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
