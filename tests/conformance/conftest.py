"""The stores that must behave alike, one after the other."""

from collections.abc import AsyncIterator

import pytest

from bot.ports import Store
from bot.store.postgres import open_store
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stored import Scene, set_up


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_dsn(request: pytest.FixtureRequest) -> str | None:
    """The URL of the store's database; None for the store in memory."""
    if request.param == "memory":
        return None
    return str(request.getfixturevalue("postgres_dsn"))


@pytest.fixture
async def store(store_dsn: str | None, clock: ManualClock) -> AsyncIterator[Store]:
    if store_dsn is None:
        yield MemoryStore(clock)
        return
    async with open_store(store_dsn, clock) as opened:
        yield opened


@pytest.fixture
async def scene(store: Store) -> Scene:
    return await set_up(store)
