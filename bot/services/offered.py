"""Tells which GPU types there is a place to judge on."""

from collections.abc import Sequence

from bot.ports import Store
from runners.contract.runner import Runner


async def offered_gpus(store: Store, runners: Sequence[Runner]) -> frozenset[str]:
    """The GPU types of the runners here, and of every worker that lives."""
    here = [await runner.capabilities() for runner in runners]
    alive = await store.workers.alive()
    return frozenset(gpu for offer in here for gpu in offer.gpus) | frozenset(
        gpu for worker in alive for gpu in worker.gpus or ()
    )
