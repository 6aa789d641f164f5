"""Follows evaluations and submissions: shows their progress and waits for their results."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from signal import SIGINT, SIGTERM, getsignal, signal
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text as RichText

from bot.cli.context import CommandLine
from bot.cli.draw import STYLES
from bot.cli.errors import ExitCode
from bot.cli.json_output import status_json
from bot.domain.errors import SetupError, StoreError, UserError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState, Notice, Topic
from bot.domain.status import SubmissionStatus
from bot.ports import Store
from bot.reports.blocks import Text, Tone
from bot.reports.escaping import one_line
from bot.reports.history import own_rank_line
from bot.reports.submission import job_line, status_report
from bot.services.status import submission_status
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import Runner
from runners.contract.task import Mode
from runners.contract.verdict import Verdict

if TYPE_CHECKING:
    from bot.cli.client import Client

_MOST_ABSENCES = 5
"""The command gives up at this check in a row without a worker: a killed one may restart first."""


class ProgressLines:
    """One line per name, with its newest text; in a pipe, one line per change instead."""

    def __init__(self, console: Console, *, shown: int = 12) -> None:
        self._console = console
        self._shown = shown
        self._lines: dict[str, tuple[Text, float | None]] = {}
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=8, transient=True)
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def show(self, name: str, words: Text, fraction: float | None = None) -> None:
        """Set the newest text of a name, and the progress of its current step from 0 to 1."""
        if self._lines.get(name) == (words, fraction):
            return
        self._lines.pop(name, None)
        self._lines[name] = (words, fraction)
        if self._live is not None:
            self._live.update(self._draw())
        else:
            self._console.out(f"{one_line(name)}: {one_line(words.text)}", highlight=False)

    def _draw(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for name, (words, fraction) in list(self._lines.items())[-self._shown :]:
            table.add_row(
                RichText(one_line(name), style="bold"),
                "" if fraction is None else ProgressBar(1, fraction, width=20),
                RichText(one_line(words.text), style=STYLES[words.tone]),
            )
        return table


async def evaluate(runner: Runner, request: EvaluationRequest, lines: ProgressLines) -> Evaluation:
    """Return one evaluation, run without a database."""
    call = await runner.start(request)
    try:
        return await runner.wait(call, lambda step: _show_step(lines, request, step))
    except BaseException:
        await runner.cancel(call)
        raise


def _show_step(lines: ProgressLines, request: EvaluationRequest, step: Progress) -> None:
    count = f" {step.done}/{step.total}" if step.total else ""
    note = f", {step.note}" if step.note else ""
    fraction = step.done / step.total if step.total else None
    lines.show(request.task.name, Text(f"{step.stage}{count}{note}"), fraction)


async def follow(
    client: "Client", submission: SubmissionId, lines: ProgressLines, name: str
) -> SubmissionStatus:
    """Report each change of a submission until its end; return its final status."""
    async for status in client.watch(submission):
        _show_status(lines, name, status)
        if status.is_final:
            return status
    return await client.status(submission)


async def follow_all(
    store: Store, names: Mapping[SubmissionId, str], lines: ProgressLines
) -> dict[SubmissionId, SubmissionStatus]:
    """Report each change of many submissions until all have ended; return the final status of each.

    All share one subscription, because a reader for each would compete with the judge for the CPU.
    """
    ended: dict[SubmissionId, SubmissionStatus] = {}
    waiting = dict(names)
    async with store.events.subscribe(frozenset({Topic.PROGRESS})) as notices:
        async for notice in notices:
            for number in _changed(notice, waiting):
                status = await submission_status(store, number)
                _show_status(lines, waiting[number], status)
                if status.is_final:
                    ended[number] = status
                    del waiting[number]
            if not waiting:
                break
    return ended


def _changed(notice: Notice | None, waiting: Mapping[SubmissionId, str]) -> list[SubmissionId]:
    """Return which submissions to check: the notice's or, in case one was lost, the oldest few."""
    if notice is None:
        return list(waiting)[:3]
    number = SubmissionId(int(notice.payload))
    return [number] if number in waiting else []


def _show_status(lines: ProgressLines, name: str, status: SubmissionStatus) -> None:
    jobs = [job_line(job) for job in status.jobs]
    tones = {job.tone for job in jobs}
    tone = next(iter(tones)) if len(tones) == 1 else Tone.PLAIN
    lines.show(name, Text("; ".join(job.text for job in jobs), tone), _fraction(status))


def _fraction(status: SubmissionStatus) -> float | None:
    """Return the progress of the current step of the running job, from 0 to 1."""
    moving = [job for job in status.jobs if job.evaluation is None and job.total]
    return moving[0].done / moving[0].total if len(moving) == 1 else None


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Yield an event that Ctrl-C or SIGTERM sets; a second Ctrl-C interrupts the running work."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    previous = getsignal(SIGINT)

    def request_stop() -> None:
        stop.set()
        loop.remove_signal_handler(SIGINT)
        signal(SIGINT, previous)

    for number in (SIGINT, SIGTERM):
        loop.add_signal_handler(number, request_stop)
    try:
        yield stop
    finally:
        for number in (SIGINT, SIGTERM):
            loop.remove_signal_handler(number)


async def wait_for_result(
    line: CommandLine, client: "Client", number: SubmissionId, *, wait: bool
) -> SubmissionStatus:
    """Return the result of a stored submission; without `wait`, its current status."""
    with _hint_on_exit(line, client, number):
        await _report_stored(line, client, number)
        if wait:
            status = await _follow_with_worker(line, client, number)
            await _report_ranks(line, client, status)
            return status
        hint = await client.worker_hint()
        if hint is not None:
            line.say(f"no worker is running for this queue yet: {hint}")
        return await client.status(number)


async def _report_stored(line: CommandLine, client: "Client", number: SubmissionId) -> None:
    """Print at once who may read the source, and the submission's warning."""
    with suppress(StoreError):  # the follower waits for Podium, with its own limit
        status = await client.status(number)
        submission, deadline = status.submission, status.board.deadline
        line.say(f"submission #{number} is stored. {submission.consent.statement(deadline)}")
        if submission.warning:
            line.say(f"warning: {submission.warning}")


async def _follow_with_worker(
    line: CommandLine, client: "Client", number: SubmissionId
) -> SubmissionStatus:
    """Wait for the result; give up if no worker can judge the submission."""
    async with client.judging(line.say):
        with ProgressLines(line.err) as lines:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(_require_worker(client, number))
                status = await follow(client, number, lines, f"#{number}")
                watch.cancel()
        return status


async def _report_ranks(line: CommandLine, client: "Client", status: SubmissionStatus) -> None:
    """Print the person's rank on each GPU type where a ranked run passed."""
    submission = status.submission
    results = {each.job.gpu: each.evaluation for each in status.jobs}
    passed = {gpu for gpu, found in results.items() if found and found.verdict is Verdict.PASSED}
    if submission.mode is not Mode.RANKED or not passed:
        return
    with suppress(UserError, StoreError):  # the result is known even if the standings are not
        for board in await client.standings(status.board.name, None, None):
            own = [each for each in board.entries if each.score.person == submission.person]
            if board.gpu in passed and own:
                line.say(f"#{submission.id}: {own_rank_line(board, own[0], submission.id)}")


async def _require_worker(client: "Client", number: SubmissionId) -> None:
    """Raise SetupError if no worker can judge the submission and none appears for a while."""
    absences = 0
    while True:
        await asyncio.sleep(client.poll_s)
        obstacle = await client.obstacle(number)
        absences = 0 if obstacle is None else absences + 1
        if obstacle is not None and absences >= _MOST_ABSENCES:
            raise SetupError(obstacle)


@contextmanager
def _hint_on_exit(line: CommandLine, client: "Client", number: SubmissionId) -> Iterator[None]:
    """Print what a stored submission does next if this command ends before the submission."""
    try:
        yield
    except BaseException:
        line.say(
            f"submission #{number} is stored and {client.after_exit()}; "
            f"`podium show {number}{client.suffix}` shows it, "
            f"`podium cancel {number}{client.suffix}` stops it"
        )
        raise


def print_result(
    line: CommandLine, status: SubmissionStatus, *, wait: bool, as_json: bool
) -> ExitCode:
    """Print the result, or that it is queued; return the exit code."""
    words = status_report(status) if wait else f"submission #{status.submission.id} is queued"
    line.answer(words, status_json(status), as_json=as_json)
    return exit_code(status) if wait else ExitCode.PASSED


def exit_code(status: SubmissionStatus) -> ExitCode:
    """Return PASSED when every job passed, INTERNAL when a job failed, else VERDICT."""
    if any(each.job.state is JobState.FAILED for each in status.jobs):
        return ExitCode.INTERNAL
    verdicts = [each.evaluation.verdict for each in status.jobs if each.evaluation is not None]
    passed = len(verdicts) == len(status.jobs) and set(verdicts) == {Verdict.PASSED}
    return ExitCode.PASSED if passed else ExitCode.VERDICT
