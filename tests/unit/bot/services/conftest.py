"""The place where services are tested: a store in memory with one person and one board."""

import pytest

from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place


@pytest.fixture
async def place() -> Place:
    clock = ManualClock()
    return await make_place(MemoryStore(clock), clock)
