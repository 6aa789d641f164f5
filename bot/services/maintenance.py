"""Requeues the jobs of lost workers; deletes old events, notifications and idempotency keys."""

import asyncio
from contextlib import suppress
from datetime import timedelta

import structlog

from bot.domain.errors import StoreError
from bot.ports import Store

KEPT = timedelta(days=7)
"""How long the events of an ended job are kept; its evaluation stays."""
NEWS_KEPT = timedelta(days=30)
"""How long delivered notifications are remembered, so that none is sent twice."""
FORGET_EVERY_S = 3600.0

_log = structlog.get_logger(__name__)


async def recover(store: Store, stop: asyncio.Event, *, every_s: float = 5.0) -> None:
    """Requeue jobs with expired leases and delete old data, periodically, until `stop` is set."""
    loop = asyncio.get_running_loop()
    forget_at = loop.time()
    while not stop.is_set():
        await _reap(store)
        if loop.time() >= forget_at:
            await _forget(store)
            forget_at = loop.time() + FORGET_EVERY_S
        with suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await stop.wait()


async def _reap(store: Store) -> None:
    try:
        reaped = await store.jobs.reap()
    except StoreError as error:
        _log.warning("reap failed", action="reap-failed", error=str(error))
        return
    if reaped:
        _log.info("leases ran out", action="reaped", jobs=reaped)


async def _forget(store: Store) -> None:
    try:
        forgotten = await store.jobs.forget_events(KEPT)
        await store.outbox.forget(NEWS_KEPT)
        await store.submissions.forget_keys()
    except StoreError as error:
        _log.warning("nothing forgotten", action="forget-failed", error=str(error))
        return
    if forgotten:
        _log.info("old steps were removed", action="forgotten", events=forgotten)
