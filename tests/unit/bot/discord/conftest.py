"""The place where the door's own parts are tested: a store in memory with one person and board."""

import pytest

from bot.domain.publication import PublishRequest
from bot.services.publishing.publish import publish
from tests.doubles.clock import ManualClock
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
