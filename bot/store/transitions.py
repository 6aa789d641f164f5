"""How a job changes when its worker fails, vanishes or hands it back; used by both stores."""

from dataclasses import replace
from datetime import datetime

from bot.domain.job import Job, JobState, attempts_after_loss, backoff
from bot.store.text import storable


def after_failure(job: Job, error: str, now: datetime, *, final: bool = False) -> Job:
    """The running job after an attempt that failed for our own fault.

    Its call has failed with it, so the next attempt starts a new one.
    """
    return replace(_given_up(job, storable(error), now, final=final), call=None)


def after_loss(job: Job, error: str, now: datetime) -> Job:
    """The running job whose attempt was lost with its runner, while its worker lives to say so."""
    return replace(_lost(job, storable(error), now), call=None)


def after_lost_lease(job: Job, now: datetime) -> Job:
    """The running job whose worker vanished; its call may still run, so it is kept."""
    error = f"the worker vanished during attempt {job.attempt}"
    return _lost(job, error, now)


def after_return(job: Job, now: datetime) -> Job:
    """The running job which its worker hands back untouched."""
    if job.cancel_requested:
        return _ended(job, JobState.CANCELLED, now)
    return replace(
        job, state=JobState.QUEUED, attempt=job.attempt - 1, worker=None, run_at=now, error=None
    )


def after_cancel(job: Job, now: datetime) -> Job:
    """The job that a person stopped."""
    return _ended(job, JobState.CANCELLED, now)


def after_success(job: Job, now: datetime) -> Job:
    """The job whose evaluation was accepted."""
    return replace(_ended(job, JobState.SUCCEEDED, now), error=None)


def _lost(job: Job, error: str, now: datetime) -> Job:
    replaced = replace(job, max_attempts=attempts_after_loss(job.max_attempts))
    return _given_up(replaced, error, now)


def _given_up(job: Job, error: str, now: datetime, *, final: bool = False) -> Job:
    failed = replace(job, error=error)
    if job.cancel_requested:
        return _ended(failed, JobState.CANCELLED, now)
    if final or job.attempt >= job.max_attempts:
        return _ended(failed, JobState.FAILED, now)
    return replace(failed, state=JobState.QUEUED, worker=None, run_at=now + backoff(job.attempt))


def _ended(job: Job, state: JobState, now: datetime) -> Job:
    return replace(job, state=state, finished_at=now)
