"""Follows evaluations and submissions: shows their progress, and waits for how they end."""

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
from bot.cli.draw import STYLES, draw
from bot.cli.errors import ExitCode
from bot.cli.json_output import dumps, status_json
from bot.domain.errors import SetupError, StoreError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState, Notice, Topic
from bot.domain.status import SubmissionStatus
from bot.ports import Store
from bot.reports.blocks import Text, Tone
from bot.reports.escaping import one_line
from bot.reports.submission import job_line, status_report
from bot.services.status import submission_status
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import Runner
from runners.contract.verdict import Verdict

if TYPE_CHECKING:
    from bot.cli.client import Client

_ABSENCES = 5
"""So many checks in a row without a judge: enough time to restart one that was killed."""


class ProgressLines:
    """One line per name, the newest words of each; a pipe gets a line per change instead."""

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

    def tell(self, name: str, words: Text, share: float | None = None) -> None:
        """Give the newest words of a name, and how much of its present step is done, of 1."""
        if self._lines.get(name) == (words, share):
            return
        self._lines.pop(name, None)
        self._lines[name] = (words, share)
        if self._live is not None:
            self._live.update(self._drawing())
        else:
            self._console.out(f"{one_line(name)}: {one_line(words.text)}", highlight=False)

    def _drawing(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for name, (words, share) in list(self._lines.items())[-self._shown :]:
            table.add_row(
                RichText(one_line(name), style="bold"),
                "" if share is None else ProgressBar(1, share, width=20),
                RichText(one_line(words.text), style=STYLES[words.tone]),
            )
        return table


async def evaluate(runner: Runner, request: EvaluationRequest, lines: ProgressLines) -> Evaluation:
    """One evaluation from start to end, without a database."""
    call = await runner.start(request)
    try:
        return await runner.wait(call, lambda step: _tell_step(lines, request, step))
    except BaseException:
        await runner.cancel(call)
        raise


def _tell_step(lines: ProgressLines, request: EvaluationRequest, step: Progress) -> None:
    count = f" {step.done}/{step.total}" if step.total else ""
    note = f", {step.note}" if step.note else ""
    share = step.done / step.total if step.total else None
    lines.tell(request.task.name, Text(f"{step.stage}{count}{note}"), share)


async def follow(
    client: "Client", submission: SubmissionId, lines: ProgressLines, name: str
) -> SubmissionStatus:
    """Tell every move of a submission until its end; gives how it ended."""
    async for reading in client.watch(submission):
        _show_status(lines, name, reading)
        if reading.is_final:
            return reading
    return await client.status(submission)


async def follow_all(
    store: Store, names: Mapping[SubmissionId, str], lines: ProgressLines
) -> dict[SubmissionId, SubmissionStatus]:
    """Tell every move of many submissions until all have ended; gives how each ended.

    One subscription for all: a reader per submission would take the machine from the judge.
    """
    ended: dict[SubmissionId, SubmissionStatus] = {}
    waiting = dict(names)
    async with store.events.subscribe(frozenset({Topic.PROGRESS})) as notices:
        async for notice in notices:
            for number in _moved(notice, waiting):
                reading = await submission_status(store, number)
                _show_status(lines, waiting[number], reading)
                if reading.is_final:
                    ended[number] = reading
                    del waiting[number]
            if not waiting:
                break
    return ended


def _moved(notice: Notice | None, waiting: Mapping[SubmissionId, str]) -> list[SubmissionId]:
    """Whom a notice concerns; without one the oldest few, since notices may be lost."""
    if notice is None:
        return list(waiting)[:3]
    number = SubmissionId(int(notice.payload))
    return [number] if number in waiting else []


def _show_status(lines: ProgressLines, name: str, reading: SubmissionStatus) -> None:
    jobs = [job_line(job) for job in reading.jobs]
    tones = {job.tone for job in jobs}
    tone = next(iter(tones)) if len(tones) == 1 else Tone.PLAIN
    lines.tell(name, Text("; ".join(job.text for job in jobs), tone), _share(reading))


def _share(reading: SubmissionStatus) -> float | None:
    """How much of the present step is done, of the one job that moves."""
    moving = [job for job in reading.jobs if job.evaluation is None and job.total]
    return moving[0].done / moving[0].total if len(moving) == 1 else None


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C or a polite kill sets; a second Ctrl-C breaks off what runs."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    usual = getsignal(SIGINT)

    def ask() -> None:
        stop.set()
        loop.remove_signal_handler(SIGINT)
        signal(SIGINT, usual)

    for number in (SIGINT, SIGTERM):
        loop.add_signal_handler(number, ask)
    try:
        yield stop
    finally:
        for number in (SIGINT, SIGTERM):
            loop.remove_signal_handler(number)


async def wait_for_result(
    line: CommandLine, client: "Client", number: SubmissionId, *, wait: bool
) -> SubmissionStatus:
    """Return how a stored submission ended; without `wait`, its present status."""
    with _parting_words(line, client, number):
        if wait:
            await _warn(line, client, number)
            return await _followed(line, client, number)
        idle = await client.idle()
        if idle is not None:
            line.say(f"nobody works through this queue yet: {idle}")
        return await client.status(number)


async def _warn(line: CommandLine, client: "Client", number: SubmissionId) -> None:
    """Say at once what the door had to say of it."""
    with suppress(StoreError):  # who follows it waits for Podium, and knows for how long
        if warning := (await client.status(number)).submission.warning:
            line.say(f"warning: {warning}")


async def _followed(line: CommandLine, client: "Client", number: SubmissionId) -> SubmissionStatus:
    """Waits for who judges it, and gives up once nobody is there who could."""
    async with client.attending(line.say):
        with ProgressLines(line.err) as lines:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(_desertion(client, number))
                ended = await follow(client, number, lines, f"#{number}")
                watch.cancel()
        return ended


async def _desertion(client: "Client", number: SubmissionId) -> None:
    """SetupError once nobody is there who could judge it, and nobody comes in a while."""
    absences = 0
    while True:
        await asyncio.sleep(client.look_s)
        lack = await client.lack(number)
        absences = 0 if lack is None else absences + 1
        if lack is not None and absences >= _ABSENCES:
            raise SetupError(lack)


@contextmanager
def _parting_words(line: CommandLine, client: "Client", number: SubmissionId) -> Iterator[None]:
    """Says what becomes of a stored submission which this command does not see to its end."""
    try:
        yield
    except BaseException:
        line.say(
            f"submission #{number} is stored and {client.keeper()}; "
            f"`podium show {number}{client.suffix}` shows it, "
            f"`podium cancel {number}{client.suffix}` stops it"
        )
        raise


def print_result(
    line: CommandLine, ended: SubmissionStatus, *, wait: bool, as_json: bool
) -> ExitCode:
    """Print how it ended, or that it is queued; return the exit code."""
    if as_json:
        line.out.out(dumps(status_json(ended)), highlight=False)
    elif wait:
        draw(status_report(ended), line.out)
    else:
        line.out.out(f"submission #{ended.submission.id} is queued", highlight=False)
    return exit_code(ended) if wait else ExitCode.PASSED


def exit_code(ended: SubmissionStatus) -> ExitCode:
    """Passed when every job passed; ours when a job was given up."""
    if any(each.job.state is JobState.FAILED for each in ended.jobs):
        return ExitCode.OURS
    verdicts = [each.evaluation.verdict for each in ended.jobs if each.evaluation is not None]
    passed = len(verdicts) == len(ended.jobs) and set(verdicts) == {Verdict.PASSED}
    return ExitCode.PASSED if passed else ExitCode.VERDICT
