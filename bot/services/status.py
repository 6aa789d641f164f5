"""The status of a submission: when its jobs will start, and which workers are missing."""

import asyncio
import statistics
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from bot.domain.board import awaited_words
from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId, TaskVersionId
from bot.domain.job import FINAL_STATES, Job, JobEvent, JobState, Topic, Worker
from bot.domain.records import StoredEvaluation
from bot.domain.scoring import pool_of
from bot.domain.status import JobStatus, QueuePosition, SubmissionStatus, disclosed
from bot.ports import Store
from bot.services.lookup import find_submission
from runners.contract.verdict import Stage

_SAMPLE = 5
"""How many recent evaluations of the task are used to estimate the duration of one."""
_POOL_SAMPLE = 20
"""How many recent evaluations on the GPU type are used to estimate when a slot becomes free."""
_FEW = 3
"""With fewer known durations than this, the longest is used."""
_RETRY_S = 0.5
"""Seconds between two attempts to read from an unavailable database."""
_STAGES = frozenset(str(stage) for stage in Stage)


async def submission_status(store: Store, submission_id: SubmissionId) -> SubmissionStatus:
    """Return a submission's current status; UserError when this number does not exist."""
    submission = await find_submission(store, submission_id)
    board = await store.boards.get(submission.board)
    if board is None:
        raise LookupError(f"board {submission.board} of submission {submission_id} is not there")
    # Read jobs before evaluations, so that a job seen as ended has its evaluation. A job that ends
    # in between is shown as first read, so that the parts of the status are consistent.
    found = await store.jobs.of(submission_id)
    stored = {each.job: each for each in await store.results.evaluations(submission_id)}
    latest = {event.job: event for event in await store.jobs.latest(submission_id)}
    jobs = [
        await _job_status(
            store,
            submission.task_version,
            job,
            event=latest.get(job.id),
            stored=stored.get(job.id),
        )
        for job in found
    ]
    exclusion = await store.moderation.exclusion_of(submission_id)
    return SubmissionStatus(submission, board, tuple(jobs), exclusion)


async def _job_status(
    store: Store,
    version: TaskVersionId,
    job: Job,
    *,
    event: JobEvent | None,
    stored: StoredEvaluation | None,
) -> JobStatus:
    if stored is not None and job.state in FINAL_STATES:
        return JobStatus(job, evaluation=disclosed(stored.evaluation))
    if job.state is JobState.QUEUED:
        return JobStatus(job, place=await _place(store, version, job))
    silence = await _silence(store, job) if job.state is JobState.RUNNING else ""
    if job.state is JobState.RUNNING and event is not None and event.kind in _STAGES:
        body = event.body
        done, total = int(body.get("done", 0)), int(body.get("total", 0))
        return JobStatus(job, event.kind, done, total, silence or str(body.get("note", "")))
    return JobStatus(job, note=silence)


async def _silence(store: Store, job: Job) -> str:
    """Return the message for a running job whose worker is probably lost."""
    if job.worker in await store.workers.reporting():
        return ""
    return "its worker does not respond; the job waits for another worker"


async def _place(store: Store, version: TaskVersionId, job: Job) -> QueuePosition:
    position = 1 + await store.jobs.ahead(job.id)
    running = (await store.jobs.backlog()).get(job.gpu, {}).get(JobState.RUNNING, 0)
    own = await store.results.durations(version, job.gpu, _SAMPLE)
    of_pool = await store.results.pool_durations(job.gpu, _POOL_SAMPLE)
    estimate_s = waiting_time(own, of_pool, position, running)
    paused = (await store.moderation.pool_pauses()).get(job.gpu)
    return QueuePosition(position, estimate_s, paused, running)


def waiting_time(
    own_s: Sequence[float], pool_s: Sequence[float], position: int, slots: int
) -> float | None:
    """Return the seconds until the job at this position, from 1, ends; None when nothing is known.

    All `slots` are busy while jobs wait, so it starts after `position` jobs have ended; the first
    of them is assumed to be halfway through. Short jobs end first, so the first durations are too
    short: with few of the GPU type nothing is known, with few of the task the longest is used.
    """
    if len(pool_s) < _FEW or slots < 1:
        return None
    own_s = own_s or pool_s
    each_s = statistics.fmean(pool_s)
    lasts_s = max(own_s) if len(own_s) < _FEW else statistics.median(own_s)
    return each_s * (position - 0.5) / slots + lasts_s


async def watch(
    store: Store, submission_id: SubmissionId, *, patience_s: float = 60.0
) -> AsyncIterator[SubmissionStatus]:
    """Yield the status now and after each change, up to the final one.

    Waits for an unavailable database; StoreError only after `patience_s`.
    """
    last: SubmissionStatus | None = None
    loop = asyncio.get_running_loop()
    away_since: float | None = None
    while last is None or not last.is_final:
        try:
            async with aclosing(_readings(store, submission_id)) as readings:
                async for reading in readings:
                    away_since = None
                    if reading != last:
                        last = reading
                        yield reading
        except StoreError:
            away_since = loop.time() if away_since is None else away_since
            if loop.time() - away_since >= patience_s:
                raise
            await asyncio.sleep(min(_RETRY_S, patience_s))


async def _readings(
    store: Store, submission_id: SubmissionId
) -> AsyncGenerator[SubmissionStatus, None]:
    """Yield one status at once, then one for each notice and about one per second."""
    async with store.events.subscribe(frozenset({Topic.PROGRESS})) as notices:
        reading = await submission_status(store, submission_id)
        yield reading
        while not reading.is_final:
            notice = await anext(notices)
            if notice is None or notice.payload == str(submission_id):
                reading = await submission_status(store, submission_id)
                yield reading


async def unserved(store: Store, submission_id: SubmissionId) -> tuple[str, ...]:
    """Return the GPU types for which a waiting submission has no live worker.

    Empty while any of its jobs runs or may be claimed, and while a live worker does not know its
    offers yet.
    """
    return tuple(job.gpu for job in await _forlorn(store, submission_id))


async def awaited(store: Store, submission_id: SubmissionId) -> tuple[str, ...]:
    """Return the same in words, with the pool if only one may time it: `A100 of pool box`."""
    return tuple(awaited_words(job.gpu, job.pool) for job in await _forlorn(store, submission_id))


async def _forlorn(store: Store, submission_id: SubmissionId) -> tuple[Job, ...]:
    jobs = [job for job in await store.jobs.of(submission_id) if job.state not in FINAL_STATES]
    workers = await store.workers.alive()
    if any(worker.gpus is None for worker in workers):
        return ()
    forlorn = [
        job
        for job in jobs
        if job.state is JobState.QUEUED and not any(_offers(each, job) for each in workers)
    ]
    return tuple(forlorn) if len(forlorn) == len(jobs) else ()


def _offers(worker: Worker, job: Job) -> bool:
    if job.gpu not in (worker.gpus or ()):
        return False
    return not job.pool or any(
        job.gpu in offer.gpus and pool_of(worker.name, name) == job.pool
        for name, offer in worker.offers.items()
    )
