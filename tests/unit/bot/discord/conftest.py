"""What this context's own parts are tested in: a store in memory, and the local Discord's room."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bot.domain.publication import PublishRequest
from bot.services.publishing.publish import publish
from tests.doubles.clock import ManualClock
from tests.doubles.discord_room import Room, room
from tests.doubles.factories import make_task
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place


@pytest.fixture
async def place() -> Place:
    clock = ManualClock()
    store = MemoryStore(clock)
    ada = (await store.people.ensure("local:ada", "ada")).id
    published = await publish(store, clock, PublishRequest(ada), make_task())
    return Place(store, clock, ada, published.board)


@pytest_asyncio.fixture(name="room")
async def a_room() -> AsyncIterator[Room]:
    async with room() as found:
        yield found
