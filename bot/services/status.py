"""What a viewer may read of a submission: its status, its source, its log and its profile."""

import asyncio
import statistics
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from math import isclose

from bot.domain.board import Board, SourceVisibility, Viewer, show_target
from bot.domain.confirmation import LostPlace
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import SubmissionId, TaskVersionId, is_system_submission
from bot.domain.job import FINAL_STATES, Job, JobEvent, JobState, Topic, Worker
from bot.domain.records import StoredEvaluation, StoredFile
from bot.domain.scoring import ScoreValue, pool_of, score
from bot.domain.status import (
    QUOTING,
    JobStatus,
    QueuePosition,
    SubmissionStatus,
    disclosed,
    with_costs,
    without_quotes,
)
from bot.domain.submission import Submission
from bot.domain.times import show_deadline
from bot.ports import Clock, Store
from bot.services.lookup import board_of, find_submission, visible_submission
from bot.services.standings import task_version
from runners.contract.task import Mode
from runners.contract.verdict import Stage

_SAMPLE = 5
"""How many recent evaluations of the task are used to estimate the duration of one."""
_GPU_SAMPLE = 20
"""How many recent evaluations on the GPU type are used to estimate when a slot becomes free."""
_MIN_SAMPLE = 3
"""With fewer known durations than this, the longest is used."""
_RETRY_S = 0.5
"""Seconds between two attempts to read from an unavailable database."""
_STAGES = frozenset(str(stage) for stage in Stage)


async def submission_status(store: Store, submission_id: SubmissionId) -> SubmissionStatus:
    """Return a submission's current status, with its costs; UserError for an unknown number."""
    submission = await find_submission(store, submission_id)
    board = await board_of(store, submission)
    # Read jobs before evaluations, so that a job seen as ended has its evaluation. A job that ends
    # in between is shown as first read, so that the parts of the status are consistent.
    jobs = await store.jobs.of(submission_id)
    stored = {each.job: each for each in await store.results.evaluations(submission_id)}
    latest = {event.job: event for event in await store.jobs.latest(submission_id)}
    exclusion = await store.moderation.exclusion_of(submission_id)
    told = await store.confirmations.concerning((submission_id,))
    compared = {each.gpu: each for each in told if each.submission == submission_id}
    lost = {each.gpu: LostPlace.by(each) for each in told if each.rival == submission_id}
    ranking = await _times_of_comparisons(store, submission, tuple(stored.values()))
    statuses = [
        replace(
            await _job_status(
                store,
                submission.task_version,
                job,
                event=latest.get(job.id),
                stored=stored.get(job.id),
            ),
            confirmation=compared.get(job.gpu),
            lost=lost.get(job.gpu),
            ranks=ranking.get(job.gpu),
        )
        for job in jobs
    ]
    found = SubmissionStatus(submission, board, tuple(statuses), exclusion)
    return with_costs(found, store.costs.prices)


async def _times_of_comparisons(
    store: Store, submission: Submission, stored: Sequence[StoredEvaluation]
) -> dict[str, ScoreValue]:
    """Return the times that rank on GPU types where they are not those of the run itself."""
    found = {each.gpu: each.score for each in await store.results.outcomes((submission.id,))}
    if not any(found.values()):
        return {}
    task = (await task_version(store, submission.task_version)).definition
    own = {each.gpu: score(task, each.evaluation) for each in stored}
    return {gpu: value for gpu, value in found.items() if value and _differs(value, own.get(gpu))}


def _differs(value: ScoreValue, own: ScoreValue | None) -> bool:
    """Return whether two times differ by more than rounding."""
    return own is not None and not isclose(value.time_ns, own.time_ns, rel_tol=1e-6)


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
        return JobStatus(job, place=await _queue_position(store, version, job))
    note = await _lost_worker_note(store, job) if job.state is JobState.RUNNING else ""
    if job.state is JobState.RUNNING and event is not None and event.kind in _STAGES:
        body = event.body
        done, total = int(body.get("done", 0)), int(body.get("total", 0))
        return JobStatus(job, event.kind, done, total, note or str(body.get("note", "")))
    return JobStatus(job, note=note)


async def _lost_worker_note(store: Store, job: Job) -> str:
    """Return the message for a running job whose worker is probably lost."""
    if job.worker in await store.workers.reporting():
        return ""
    return "its worker does not respond; the job waits for another worker"


async def _queue_position(store: Store, version: TaskVersionId, job: Job) -> QueuePosition:
    position = 1 + await store.jobs.ahead(job.id)
    running = (await store.jobs.backlog()).get(job.gpu, {}).get(JobState.RUNNING, 0)
    own = await store.results.durations(version, job.gpu, _SAMPLE)
    on_gpu = await store.results.gpu_durations(job.gpu, _GPU_SAMPLE)
    estimate_s = waiting_time(own, on_gpu, position, running)
    paused = (await store.moderation.gpu_pauses()).get(job.gpu)
    return QueuePosition(position, estimate_s, paused, running)


def waiting_time(
    own_s: Sequence[float], gpu_s: Sequence[float], position: float, slots: int
) -> float | None:
    """Return the seconds until the job at this queue position ends; None when they are unknown.

    Position 1 is next. While jobs wait, all `slots` are busy, so the job starts after `position`
    jobs have ended. The first of them is assumed to be halfway through.

    The first known durations are too short, because short jobs end first. With few durations on
    the GPU type, the result is None. With few durations of the task, its longest is used.
    """
    if len(gpu_s) < _MIN_SAMPLE or slots < 1:
        return None
    own_s = own_s or gpu_s
    each_s = statistics.fmean(gpu_s)
    lasts_s = max(own_s) if len(own_s) < _MIN_SAMPLE else statistics.median(own_s)
    return each_s * (position - 0.5) / slots + lasts_s


async def watch(
    store: Store, submission_id: SubmissionId, *, patience_s: float = 60.0
) -> AsyncIterator[SubmissionStatus]:
    """Yield the status now and after each change, up to the final one.

    Waits up to `patience_s` for an unavailable database, then raises StoreError.
    """
    last: SubmissionStatus | None = None
    loop = asyncio.get_running_loop()
    unavailable_since: float | None = None
    while last is None or not last.is_final:
        try:
            async with aclosing(_changes(store, submission_id)) as changes:
                async for status in changes:
                    unavailable_since = None
                    if status != last:
                        last = status
                        yield status
        except StoreError:
            unavailable_since = loop.time() if unavailable_since is None else unavailable_since
            if loop.time() - unavailable_since >= patience_s:
                raise
            await asyncio.sleep(min(_RETRY_S, patience_s))


async def _changes(
    store: Store, submission_id: SubmissionId
) -> AsyncGenerator[SubmissionStatus, None]:
    """Yield one status at once, then one for each notice and about one per second."""
    async with store.events.subscribe(frozenset({Topic.PROGRESS})) as notices:
        status = await submission_status(store, submission_id)
        yield status
        while not status.is_final:
            notice = await anext(notices)
            if notice is None or notice.payload == str(submission_id):
                status = await submission_status(store, submission_id)
                yield status


async def unserved(store: Store, submission_id: SubmissionId) -> tuple[str, ...]:
    """Return the GPU types for which a waiting submission has no live worker.

    Empty while any of its jobs runs or may be claimed, and while a live worker does not know its
    offers yet.
    """
    return tuple(job.gpu for job in await _unserved_jobs(store, submission_id))


async def unserved_in_words(store: Store, submission_id: SubmissionId) -> tuple[str, ...]:
    """Return `unserved` in words, with the pool of a pinned job: `A100 of pool box`."""
    return tuple(
        show_target(job.gpu, job.pool) for job in await _unserved_jobs(store, submission_id)
    )


async def _unserved_jobs(store: Store, submission_id: SubmissionId) -> tuple[Job, ...]:
    jobs = [job for job in await store.jobs.of(submission_id) if job.state not in FINAL_STATES]
    workers = await store.workers.alive()
    if any(worker.gpus is None for worker in workers):
        return ()
    waiting = [
        job
        for job in jobs
        if job.state is JobState.QUEUED and not any(_offers(each, job) for each in workers)
    ]
    return tuple(waiting) if len(waiting) == len(jobs) else ()


def _offers(worker: Worker, job: Job) -> bool:
    if job.gpu not in (worker.gpus or ()):
        return False
    return not job.pool or any(
        job.gpu in offer.gpus and pool_of(worker.name, name) == job.pool
        for name, offer in worker.offers.items()
    )


@dataclass(frozen=True, slots=True)
class Source:
    """A submitted file."""

    submission: SubmissionId
    file_name: str
    text: str


async def source(store: Store, clock: Clock, viewer: Viewer, submission_id: SubmissionId) -> Source:
    """Return the viewer's own source at any time, another person's if its board shows it.

    Admins read a hidden source by `moderation.look`, which is recorded in the audit log.
    """
    submission = await visible_submission(store, viewer, submission_id)
    if submission.person != viewer.person:
        board = await board_of(store, submission)
        if not shows_sources(board, clock, submission):
            raise _hidden(viewer, submission, board)
    return await stored_source(store, submission)


async def stored_source(store: Store, submission: Submission) -> Source:
    """Return a source; the caller checks who may read it."""
    text = await store.submissions.source(submission.id)
    return Source(submission.id, submission.file_name, text)


def shows_sources(board: Board, clock: Clock, submission: Submission) -> bool:
    """Return whether everyone who sees the board may now read the submission's source."""
    is_open = board.is_open(clock.now())
    return board.access.shows_sources(is_open=is_open, consent=submission.consent)


def _hidden(viewer: Viewer, submission: Submission, board: Board) -> UserError:
    owned = f"submission {submission.id} belongs to another person"
    if viewer.sees_all:
        message = f"{owned}, and its source is hidden; admins may look at it, which is recorded"
        return UserError("hidden-source", message)
    if submission.consent is SourceVisibility.NEVER is not board.access.source:
        message = f"{owned}, and when it was submitted its board never showed sources to others"
        return UserError("hidden-source", message)
    if board.access.source is SourceVisibility.NEVER:
        return UserError("hidden-source", f"{owned}, and its board never shows sources to others")
    if board.deadline is None:
        message = f"{owned}; its board shows sources to others after a deadline, and has none yet"
        return UserError("hidden-source", message)
    when = show_deadline(board.deadline)
    message = f"{owned}; its board shows sources to others after {when}, its deadline"
    return UserError("hidden-source", message, {when: board.deadline})


async def profile_files(store: Store, submission: Submission) -> tuple[StoredFile, ...]:
    """Return the profiler's reports by GPU type; empty for other modes."""
    if submission.mode is not Mode.PROFILE:
        return ()
    return await store.results.files(submission.id)


async def read_submission(
    store: Store, clock: Clock, viewer: Viewer, number: SubmissionId
) -> SubmissionStatus:
    """Return a submission's status; UserError `unknown-submission` if hidden from the viewer.

    Other people get its verdict without the text of exceptions, and while its source is hidden, no
    log and no warning: compilers and programs quote the source there.
    """
    await visible_submission(store, viewer, number)
    status = await submission_status(store, number)
    if _is_private_to(status, viewer):
        return status
    if _may_see_source(status, clock, viewer):
        return replace(status, jobs=tuple(map(_without_exception, status.jobs)))
    submission = replace(status.submission, warning="", note="")
    jobs = tuple(_without_log(each) for each in status.jobs)
    return replace(status, submission=submission, jobs=jobs)


async def read_files(
    store: Store, clock: Clock, viewer: Viewer, number: SubmissionId
) -> tuple[StoredFile, ...]:
    """Return the files of its profile; none for viewers who get no log."""
    submission = await visible_submission(store, viewer, number)
    status = await submission_status(store, number)
    return await profile_files(store, submission) if _may_see_source(status, clock, viewer) else ()


def _is_private_to(status: SubmissionStatus, viewer: Viewer) -> bool:
    """Return whether the viewer is the owner, an admin, or for the system's own the creator."""
    submission, board = status.submission, status.board
    if is_system_submission(submission.id) and board.belongs_to(viewer):
        return True
    return viewer.sees_all or submission.person == viewer.person


def _may_see_source(status: SubmissionStatus, clock: Clock, viewer: Viewer) -> bool:
    """Return whether the viewer may see everything that could reveal its source."""
    submission = status.submission
    is_shown = shows_sources(status.board, clock, submission)
    is_persons = not is_system_submission(submission.id)
    return (is_persons and is_shown) or _is_private_to(status, viewer)


def _without_exception(job: JobStatus) -> JobStatus:
    if job.evaluation is None or job.evaluation.verdict not in QUOTING:
        return job
    return _without_log(job)


def _without_log(job: JobStatus) -> JobStatus:
    return replace(
        job,
        evaluation=job.evaluation and without_quotes(job.evaluation),
        confirmation=job.confirmation and job.confirmation.without_quotes,
    )
