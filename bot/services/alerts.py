"""Finds what needs an admin: lost workers, stuck queues, unfit cards, near-identical sources.

An alert lasts as long as its cause is found. Near-identical sources are only reported; people
decide whether that means anything.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

import structlog

from bot.domain.errors import StoreError
from bot.ports import Clock, Store
from bot.services.operations import read_metrics
from bot.services.similar import compare_sources

STUCK_AFTER = timedelta(minutes=5)
"""A queue is stuck if a job that could start waits this long and none runs on its GPU type."""
SAME_AGAIN = timedelta(minutes=15)
"""If an alert begins again within this time of its end, its old message is edited."""
_log = structlog.get_logger(__name__)


async def run_alerts(
    store: Store, clock: Clock, stop: asyncio.Event, *, every_s: float = 5.0
) -> None:
    """Look for alerts every `every_s` seconds, until `stop` is set."""
    while not stop.is_set():
        try:
            await update_alerts(store, clock)
            await compare_sources(store)
        except StoreError as error:
            _log.warning("alerts have to wait", action="alerts-wait", error=str(error))
        with suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await stop.wait()


async def update_alerts(store: Store, clock: Clock) -> None:
    """Begin the alerts whose cause is found now, and end all others."""
    found = await _lost_workers(store) | await _stuck_queues(store, clock) | await _unfit(store)
    for key, text in found.items():
        await store.alerts.begin(key, text, SAME_AGAIN)
    await store.alerts.end_except(tuple(found))


async def _lost_workers(store: Store) -> dict[str, str]:
    """Return an alert for each worker whose lease expired within the last hour, by its key."""
    return {
        f"worker {each.name}": f"Worker {each.name} ({', '.join(each.gpus or ()) or 'no GPU'}) "
        "does not answer"
        for each in await store.workers.lost()
    }


async def _stuck_queues(store: Store, clock: Clock) -> dict[str, str]:
    metrics = await read_metrics(store, clock)
    if metrics.paused:
        return {}
    return {
        f"queue {each.gpu}": f"The queue of {each.gpu} is stuck: {each.queued} "
        f"job{'' if each.queued == 1 else 's'} waiting and none running"
        for each in metrics.gpus
        if each.waits_s >= STUCK_AFTER.total_seconds() and not each.running and not each.paused
    }


async def _unfit(store: Store) -> dict[str, str]:
    return {
        f"card {worker.name} {each.gpu} {each.card}": f"A card is out of service: {each.gpu} "
        f"{each.card} of worker {worker.name}: {each.why}"
        for worker in await store.workers.alive()
        for offer in worker.offers.values()
        for each in offer.out_of_service
    }
