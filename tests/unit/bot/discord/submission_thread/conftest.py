"""The room in which what this door shows is tested: the local Discord and a store in memory."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.doubles.discord_room import Room, room


@pytest_asyncio.fixture(name="room")
async def a_room() -> AsyncIterator[Room]:
    async with room() as found:
        yield found
