"""Follows one evaluation or one submission on its way and tells each step."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from signal import SIGINT, SIGTERM, getsignal, signal

from bot.domain.ids import SubmissionId
from bot.domain.job import Notice, Topic
from bot.domain.status import SubmissionStatus
from bot.frontends.cli.client import Client
from bot.frontends.cli.progress import ProgressLines
from bot.ports import Store
from bot.reports.blocks import Text, Tone
from bot.reports.status import job_line
from bot.services.status import status
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import Runner


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
    client: Client, submission: SubmissionId, lines: ProgressLines, name: str
) -> SubmissionStatus:
    """Tell every move of a submission until its end; gives how it ended."""
    async for reading in client.watch(submission):
        _tell(lines, name, reading)
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
                reading = await status(store, number)
                _tell(lines, waiting[number], reading)
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


def _tell(lines: ProgressLines, name: str, reading: SubmissionStatus) -> None:
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
