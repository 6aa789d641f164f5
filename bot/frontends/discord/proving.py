"""Keeps every release of this door going, once there is a line to Discord."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import discord

from bot.domain.release import Release
from bot.frontends.discord.door import DOOR, Door
from bot.frontends.discord.publication_thread.poster import Proof
from bot.services.publishing import engine as service


@asynccontextmanager
async def proving(client: discord.Client, door: Door) -> AsyncIterator[None]:
    """Proves for as long as the caller stays."""

    async def prove(release: Release, owner: str) -> None:
        await Proof.of(client, door, owner, release).run()

    ready = client.wait_until_ready
    async with service.proving(service.Proving(door.store, DOOR, door.lease, prove, ready)):
        yield
