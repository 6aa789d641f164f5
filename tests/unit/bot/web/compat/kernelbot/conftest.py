"""A place with one board, and the command line of the person who made it."""

import pytest

from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place
from tests.doubles.popcorn_cli import PopcornCli


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
async def ada(place: Place) -> PopcornCli:
    return await PopcornCli.of(place)


@pytest.fixture
async def eve(place: Place) -> PopcornCli:
    return await PopcornCli.of(place, "eve")


@pytest.fixture
def anybody(place: Place) -> PopcornCli:
    return PopcornCli.with_token(place, None)
