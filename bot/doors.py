"""Opens the doors that the settings name, and knows what each of them has to be told.

A door is imported where it is opened: its libraries take half a second to load, for which nobody at
the command line should wait.
"""

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from bot import places
from bot.domain.errors import SetupError, UserError
from bot.frontends.cli.installation import OpenPodium
from bot.ports.lines import Line
from bot.settings import Settings
from runners.contract.runner import Runner

if TYPE_CHECKING:
    from bot.frontends.discord.door import DoorSettings
    from bot.ports import Identities

_PACKAGE = "kernel-podium"


@asynccontextmanager
async def open_doors(
    settings: Settings, podium: OpenPodium, runners: Sequence[Runner]
) -> AsyncIterator[tuple[str, ...]]:
    """Every door that the settings name, open until left; gives their names."""
    async with AsyncExitStack() as stack:
        opened: list[str] = []
        discord, line = discord_settings(settings), Line("discord")
        if settings.http_port is not None:
            lines = () if discord is None else (line,)
            web = _web(settings, podium, runners, lines)
            opened.append(await stack.enter_async_context(web))
        if discord is not None:
            opened.append(await stack.enter_async_context(_discord(discord, podium, runners, line)))
        yield tuple(opened)


@asynccontextmanager
async def _web(
    settings: Settings, podium: OpenPodium, runners: Sequence[Runner], lines: tuple[Line, ...]
) -> AsyncIterator[str]:
    from bot.frontends.web.checks import checking  # noqa: PLC0415 - see the top
    from bot.frontends.web.door import Door, DoorSettings  # noqa: PLC0415 - see the top
    from bot.frontends.web.serving import serving  # noqa: PLC0415 - see the top

    lease = timedelta(seconds=podium.lease_s)
    door = Door(
        podium.store,
        podium.clock,
        lease,
        places.harness_version(),
        version(),
        settings.http_requests_per_minute,
        judges=bool(runners),
        lines=lines,
        runners=runners,
        identities=_identities(settings),
        public_url=settings.public_url,
    )
    address = DoorSettings(
        settings.http_host,
        settings.http_port or 0,
        settings.http_certificate,
        settings.http_key,
        tuple(map(str, settings.http_proxies)),
    )
    async with checking(door), serving(door, address) as url:
        yield f"web at {url}"


def _identities(settings: Settings) -> "Identities | None":
    """Discord, where the settings name an application of it."""
    secret = settings.discord_client_secret
    if settings.discord_client_id is None or secret is None:
        return None
    from bot.remote import discord_identities as discord  # noqa: PLC0415 - see the top

    return discord.DiscordIdentities(
        settings.discord_client_id,
        secret.get_secret_value(),
        settings.discord_api_base or discord.API,
        settings.discord_authorize_url or discord.PAGE,
    )


@asynccontextmanager
async def _discord(
    settings: "DoorSettings", podium: OpenPodium, runners: Sequence[Runner], line: Line
) -> AsyncIterator[str]:
    from bot.frontends.discord.door import DOOR, Door  # noqa: PLC0415 - see the top
    from bot.frontends.discord.serving import serve  # noqa: PLC0415 - see the top

    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        lease = timedelta(seconds=podium.lease_s)
        door = Door(podium.store, podium.clock, runners, lease, line)
        group.create_task(serve(door, settings, stop), name=DOOR)
        try:
            yield DOOR
        finally:
            stop.set()


def discord_settings(settings: Settings) -> "DoorSettings | None":
    """How the bot reaches Discord; None without a token."""
    token = settings.discord_token
    if token is None:
        return None
    from bot.frontends.discord.door import DoorSettings  # noqa: PLC0415 - see the top

    return DoorSettings(
        token.get_secret_value(),
        settings.discord_api_base,
        settings.discord_gateway_url,
        settings.discord_trusted_guilds,
    )


async def discord_invite(settings: Settings, application: int | None) -> str:
    """The link that lets the bot of an application into a guild; the token's without one."""
    from bot.frontends.discord.checkup import AwayError, application_of  # noqa: PLC0415 - see the top
    from bot.frontends.discord.permissions import invite_link  # noqa: PLC0415 - see the top

    if application is not None:
        return invite_link(application)
    door = discord_settings(settings)
    if door is None:
        raise UserError("no-token", "set DISCORD_TOKEN, or name the application with --application")
    try:
        return invite_link(await application_of(door))
    except AwayError as error:
        raise SetupError(f"{error}; name the application with --application") from error


def version() -> str:
    """Of Podium, as pip knows it; empty in a checkout."""
    try:
        return importlib.metadata.version(_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return ""
