"""Keeps the door open: connects, and connects again whenever Discord goes away."""

import asyncio
from contextlib import suppress

import aiohttp
import discord
import structlog

from bot.domain.errors import SetupError
from bot.frontends.discord.client import connected
from bot.frontends.discord.door import Door, DoorSettings
from bot.frontends.discord.notices import delivering
from bot.frontends.discord.showing.showing import showing

_log = structlog.get_logger(__name__)

AGAIN_S = 5.0
MOST_S = 120.0


async def serve(door: Door, settings: DoorSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set; SetupError when Discord refuses the token for good."""
    wait_s = AGAIN_S
    while not stop.is_set():
        try:
            await _session(door, settings, stop)
            wait_s = AGAIN_S
        except discord.LoginFailure as error:
            raise SetupError(
                "Discord refuses DISCORD_TOKEN; copy it anew from the application's Bot page"
            ) from error
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            _log.warning("Discord is away", action="discord_away", error=repr(error))
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), wait_s)
        wait_s = min(MOST_S, 2 * wait_s)


async def _session(door: Door, settings: DoorSettings, stop: asyncio.Event) -> None:
    """One login with everything that hangs on it, until `stop` or until the line is lost."""
    async with connected(door, settings) as client:
        line = asyncio.create_task(client.connect(reconnect=True), name="gateway")
        stopping = asyncio.create_task(stop.wait(), name="stopping")
        try:
            async with showing(client, door), delivering(client, door):
                await asyncio.wait({line, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await client.close()
            await line
