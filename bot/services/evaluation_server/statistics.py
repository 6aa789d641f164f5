"""Counts the requests that are kept, and the GPUs that there are for the next ones."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.job import JobState
from bot.domain.records import RequestCount, RequestRun
from bot.ports import Store
from bot.services.evaluation_server.accept import BOARD
from runners.contract.evaluation import CPU

NEWEST = 1000
"""How many requests times are taken over; all that are kept are counted."""


@dataclass(frozen=True, slots=True)
class Slots:
    """How many evaluations can run at once on each GPU type, and how many do now."""

    offered: Mapping[str, int]
    taken: Mapping[str, int]

    @property
    def gpus(self) -> int:
        """How many GPUs that makes; a CPU is none."""
        return sum(count for gpu, count in self.offered.items() if gpu != CPU)

    @property
    def free(self) -> dict[str, int]:
        """What could begin at once, by GPU type."""
        return {gpu: max(0, n - self.taken.get(gpu, 0)) for gpu, n in self.offered.items()}


async def tallies(store: Store) -> Mapping[JobState, RequestCount]:
    """How many requests are in each state."""
    board = await store.boards.find(BOARD)
    return {} if board is None else await store.requests.tallies(board.id)


async def newest(store: Store) -> tuple[RequestRun, ...]:
    """The newest requests."""
    board = await store.boards.find(BOARD)
    return () if board is None else await store.requests.newest(board.id, NEWEST)


async def slots(store: Store) -> Slots:
    """What the workers that live offer now, whoever's jobs run on it."""
    offered: Counter[str] = Counter()
    for worker in await store.workers.alive():
        for offer in worker.offers.values():
            offered.update(offer.gpus)
    backlog = await store.jobs.backlog()
    return Slots(offered, {gpu: by.get(JobState.RUNNING, 0) for gpu, by in backlog.items()})
