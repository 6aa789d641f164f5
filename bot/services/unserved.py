"""Tells for which GPU types a submission waits although nobody is there to judge it."""

from bot.domain.ids import SubmissionId
from bot.domain.job import FINAL_STATES, Job, JobState, Worker
from bot.domain.pins import awaited_words
from bot.domain.score import pool_of
from bot.ports import Store


async def unserved(store: Store, submission_id: SubmissionId) -> tuple[str, ...]:
    """The GPU types of a submission that waits for workers which do not live.

    Empty while anything of it runs or may be claimed, and while a worker lives that does not know
    yet what it offers.
    """
    return tuple(job.gpu for job in await _forlorn(store, submission_id))


async def awaited(store: Store, submission_id: SubmissionId) -> tuple[str, ...]:
    """The same in words, with the pool where only one may time it: `A100 of pool box`."""
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
