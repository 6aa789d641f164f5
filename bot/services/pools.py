"""Tells how busy each GPU type is, and whether anybody offers it."""

from dataclasses import dataclass

from bot.domain.job import JobState
from bot.ports import Store


@dataclass(frozen=True, slots=True)
class Pool:
    """One GPU type: jobs that have not ended, workers that offer it, and why it rests."""

    gpu: str
    queued: int
    running: int
    workers: int
    paused: str | None


async def pools(store: Store) -> tuple[Pool, ...]:
    """Every GPU type that has jobs or workers, or is paused, by name."""
    backlog = await store.jobs.backlog()
    alive = await store.workers.alive()
    pauses = await store.moderation.pool_pauses()
    offered = {gpu for worker in alive for gpu in worker.gpus or ()}
    return tuple(
        Pool(
            gpu=gpu,
            queued=backlog.get(gpu, {}).get(JobState.QUEUED, 0),
            running=backlog.get(gpu, {}).get(JobState.RUNNING, 0),
            workers=sum(gpu in (worker.gpus or ()) for worker in alive),
            paused=pauses.get(gpu),
        )
        for gpu in sorted({*backlog, *offered, *pauses})
    )
