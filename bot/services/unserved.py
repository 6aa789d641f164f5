"""Tells for which GPU types a submission waits although nobody is there to judge it."""

from bot.domain.ids import SubmissionId
from bot.domain.job import FINAL_STATES, JobState
from bot.ports import Store


async def unserved(store: Store, submission_id: SubmissionId) -> tuple[str, ...]:
    """The GPU types of a submission that waits for workers which do not live.

    Empty while anything of it runs or may be claimed, and while a worker lives that does not know
    yet what it offers.
    """
    jobs = [job for job in await store.jobs.of(submission_id) if job.state not in FINAL_STATES]
    workers = await store.workers.alive()
    if any(worker.gpus is None for worker in workers):
        return ()
    offered = {gpu for worker in workers for gpu in worker.gpus or ()}
    forlorn = [job.gpu for job in jobs if job.state is JobState.QUEUED and job.gpu not in offered]
    return tuple(forlorn) if len(forlorn) == len(jobs) else ()
