"""What whoever watches an installation sees at one moment, whichever process is asked."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.domain.job import JobState, Worker
from bot.domain.tally import Tally
from bot.ports import Clock, Store

MOST_GPUS = 64
"""GPU types told apart; creators of boards name them, and a label must not grow without end."""
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Pool:
    """One GPU type; `waits_s` is how long the longest waiting due job has been queued."""

    gpu: str
    queued: int = 0
    running: int = 0
    waits_s: float = 0.0
    slots: int = 0
    out_of_service: int = 0
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Measures:
    """Pools by GPU type, tallies since the first evaluation, and the workers that live."""

    pools: tuple[Pool, ...]
    tallies: tuple[Tally, ...]
    lost_leases: Mapping[str, int]
    workers: int
    paused: bool


async def measures(store: Store, clock: Clock) -> Measures:
    """Read from the store; StoreError while it is away."""
    operations, workers = store.operations, await store.workers.alive()
    return Measures(
        pools=await _pools(store, clock, workers),
        tallies=await operations.tallies(),
        lost_leases=await operations.lost_leases(),
        workers=len(workers),
        paused=await store.moderation.pause_notice() is not None,
    )


async def _pools(store: Store, clock: Clock, workers: Iterable[Worker]) -> tuple[Pool, ...]:
    backlog = await store.jobs.backlog()
    since = await store.operations.waiting_since()
    pauses = await store.moderation.pool_pauses()
    slots, lost = _cards(workers)
    now = clock.now()
    return tuple(
        Pool(
            gpu=gpu,
            queued=backlog.get(gpu, {}).get(JobState.QUEUED, 0),
            running=backlog.get(gpu, {}).get(JobState.RUNNING, 0),
            waits_s=max(0.0, (now - since.get(gpu, now)).total_seconds()),
            slots=slots[gpu],
            out_of_service=lost[gpu],
            paused=gpu in pauses,
        )
        for gpu in sorted({*backlog, *since, *pauses, *slots, *lost})
    )


def _cards(workers: Iterable[Worker]) -> tuple[Counter[str], Counter[str]]:
    """By GPU type the slots that runners offer, and the cards that are out of service."""
    slots, lost = Counter[str](), Counter[str]()
    for offer in (offer for worker in workers for offer in worker.offers.values()):
        slots.update(offer.gpus)
        lost.update(each.gpu for each in offer.out_of_service)
    return slots, lost
