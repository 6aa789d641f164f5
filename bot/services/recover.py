"""Brings back the jobs whose worker went away: their lease ran out."""

import asyncio
from contextlib import suppress

import structlog

from bot.domain.errors import StoreError
from bot.ports import Store

_log = structlog.get_logger(__name__)


async def recover(store: Store, stop: asyncio.Event, *, every_s: float = 5.0) -> None:
    """Reap expired leases at once and then every so often, until `stop` is set."""
    while not stop.is_set():
        await _reap(store)
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
