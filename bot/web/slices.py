"""The slices: APIs of other systems, each a folder of `compat` that no other module imports.

A slice has a module `routes` with its `router`. That module may have a function `upkeep`, which
takes the store and is called once an hour.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType

import structlog

from bot.domain.errors import StoreError
from bot.ports import Store
from bot.web import compat
from runners import plugins

UPKEEP_EVERY_S = 3600.0

_log = structlog.get_logger(__name__)


def slices() -> tuple[ModuleType, ...]:
    """Return the `routes` of every slice, by the slice's name."""
    return tuple(
        plugins.load(plugins.load(compat, name), "routes") for name in plugins.names(compat)
    )


@asynccontextmanager
async def maintaining(store: Store, *, every_s: float = UPKEEP_EVERY_S) -> AsyncIterator[None]:
    """Run the upkeep of every slice now and every `every_s` seconds, until left."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_maintain(store, every_s), name="slices")
        try:
            yield
        finally:
            running.cancel()


async def _maintain(store: Store, every_s: float) -> None:
    tasks = [each.upkeep for each in slices() if hasattr(each, "upkeep")]
    while True:
        for upkeep in tasks:
            try:
                await upkeep(store)
            except StoreError as error:
                _log.warning("nothing forgotten", action="forget-failed", error=str(error))
        await asyncio.sleep(every_s)
