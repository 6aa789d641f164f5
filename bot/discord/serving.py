"""Keeps the door open: connects, and connects again whenever Discord goes away."""

import asyncio
import math
from contextlib import suppress

import aiohttp
import discord
import structlog

from bot.discord.client import PodiumClient, connected
from bot.discord.context import Door, DoorSettings
from bot.discord.notifications import delivering
from bot.discord.publication_thread.poster import publishing
from bot.discord.rights_refresh import rechecking
from bot.discord.submission_thread.poster import showing
from bot.discord.unfinished import taking_up
from bot.domain.errors import SetupError

_log = structlog.get_logger(__name__)

AGAIN_S = 5.0
MOST_S = 30.0
"""The longest wait between two logins."""


async def serve(door: Door, settings: DoorSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set; SetupError when Discord refuses the token from the first."""
    wait_s = AGAIN_S
    known = False
    while not stop.is_set():
        try:
            async with connected(door, settings) as client:
                known, wait_s = True, AGAIN_S
                await _session(client, door, stop)
        except discord.LoginFailure as error:
            if not known:
                raise SetupError(
                    "Discord refuses DISCORD_TOKEN; copy it anew from the application's Bot page"
                ) from error
            _log.error("Discord refuses the token now", action="token_refused")
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            _log.warning("Discord is away", action="discord_away", error=repr(error))
        except Exception as error:  # noqa: BLE001 - a bug of this door must not end the judging
            _log.error("the door failed", action="incident", exc_info=error)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), wait_s)
        wait_s = min(MOST_S, 2 * wait_s)


async def _session(client: PodiumClient, door: Door, stop: asyncio.Event) -> None:
    """Everything that hangs on one login, until `stop` or until the line is lost."""
    door.line.measure = lambda: _latency_s(client)
    line = asyncio.create_task(client.connect(reconnect=True), name="gateway")
    stopping = asyncio.create_task(stop.wait(), name="stopping")
    try:
        async with (
            showing(client, door),
            delivering(client, door),
            publishing(client, door),
            rechecking(client, door),
            taking_up(client, door),
        ):
            await asyncio.wait({line, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        door.line.measure = lambda: None
        stopping.cancel()
        await client.close()
        await line


def _latency_s(client: PodiumClient) -> float | None:
    """Of the last heartbeat; None while the gateway is away, infinite before the first one."""
    if client.is_closed() or not client.is_ready():
        return None
    return math.inf if math.isnan(client.latency) else client.latency
