"""One release that cannot be read must not keep the others back."""

import asyncio
from datetime import timedelta
from unittest.mock import AsyncMock, Mock

import discord

from bot.domain.release import NewRelease
from bot.frontends.discord.door import DOOR, Door
from bot.frontends.discord.proving import proving
from tests.doubles.place import Place


async def test_a_release_that_cannot_be_read_is_given_up_and_the_others_are_taken(
    place: Place,
) -> None:
    client = Mock(spec=discord.Client, wait_until_ready=AsyncMock())
    store = place.store
    for _ in range(3):
        await store.releases.add(NewRelease(DOOR, place.ada, b"", "no wish", "no stand"))
    async with proving(client, Door(store, place.clock)):
        for _ in range(300):
            place.clock.advance(1)  # a lease that nobody prolongs would end
            await asyncio.sleep(0.01)
    assert await store.releases.claim(DOOR, "two", timedelta(0)) == ()
