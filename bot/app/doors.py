"""Opens the front ends that the settings name, with their configuration.

Each is imported only when it is opened: its libraries take half a second to load, which would delay
every command.
"""

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bot.app.context import OpenDoor, OpenPodium
from bot.app.runners import harness_version
from bot.domain.errors import SetupError, UserError
from bot.ports.outside import ServiceConnection
from bot.settings import Settings
from bot.store import locks
from runners.contract.runner import Capabilities, Runner

if TYPE_CHECKING:
    from bot.discord.context import DiscordSettings
    from bot.discord.setup_check import SetupReport
    from bot.ports import IdentityProvider, Store
    from bot.web.context import HttpSettings

_PACKAGE = "kernel-podium"
_CONNECT_S = 5.0
"""Seconds to wait for connections to remote services: many times what they usually need."""
_POLL_S = 0.1


@asynccontextmanager
async def open_doors(
    settings: Settings, podium: OpenPodium, runners: Sequence[Runner]
) -> AsyncIterator[tuple[OpenDoor, ...]]:
    """Yield every front end that the settings name, open until the block ends."""
    async with AsyncExitStack() as stack:
        opened: list[OpenDoor] = []
        discord, connection = discord_settings(settings), ServiceConnection("discord")
        if settings.http_port is not None:
            connections = () if discord is None else (connection,)
            web = _web(settings, podium, runners, connections)
            opened.append(await stack.enter_async_context(web))
        if discord is not None:
            name = await stack.enter_async_context(_discord(discord, podium, connection))
            opened.append(OpenDoor(name, connection))
            with suppress(TimeoutError):
                async with asyncio.timeout(_CONNECT_S):
                    await _connected(opened)
        yield tuple(opened)


@asynccontextmanager
async def ready(
    data_dir: Path, runners: Sequence[Runner], doors: Sequence[OpenDoor]
) -> AsyncIterator[tuple[tuple[str, Capabilities], ...]]:
    """Yield the offers of all runners; until the block ends, others see this process as ready."""
    offers = tuple([(runner.name, await runner.capabilities()) for runner in runners])
    async with asyncio.TaskGroup() as group:
        showing = group.create_task(_show_ready(data_dir, doors), name="ready")
        try:
            yield offers
        finally:
            showing.cancel()


async def _show_ready(data_dir: Path, doors: Sequence[OpenDoor]) -> None:
    await _connected(doors)
    async with locks.ready(data_dir):
        await asyncio.Event().wait()


async def _connected(doors: Sequence[OpenDoor]) -> None:
    """Wait until every front end that uses a remote service is connected to it."""
    used = [door.connection for door in doors if door.connection is not None]
    while not all(each.is_connected for each in used):  # noqa: ASYNC110 - they have no event
        await asyncio.sleep(_POLL_S)


@asynccontextmanager
async def _web(
    settings: Settings,
    podium: OpenPodium,
    runners: Sequence[Runner],
    connections: tuple[ServiceConnection, ...],
) -> AsyncIterator[OpenDoor]:
    """Yield the HTTP front end; it creates sign-in links only if no other machine can reach it."""
    from bot.web import app, context, publications  # noqa: PLC0415 - see the top

    door = context.WebContext(
        podium.store,
        podium.clock,
        timedelta(seconds=podium.lease_s),
        harness_version(),
        version(),
        settings.http_requests_per_minute,
        has_runners=bool(runners),
        connections=connections,
        identities=_identities(settings),
        public_url=settings.public_url,
        device_metrics=settings.device_metrics,
        confirm_places=settings.confirm_places,
    )
    address = _http_settings(settings)
    serving = app.serving(door, address)
    async with publications.checking(door), app.maintaining(door.store), serving as url:

        def link_for(name: str) -> str:
            return f"{url}/sign-in/link?key={door.sign_in_links.key_for(name, door.clock.now())}"

        link = link_for if app.is_local(door, address) else None
        yield OpenDoor(f"web at {url}", link_for=link)


def _http_settings(settings: Settings) -> "HttpSettings":
    """Return where the pages are served, and which proxies are trusted."""
    from bot.web.context import HttpSettings  # noqa: PLC0415 - see the top

    return HttpSettings(
        settings.http_host,
        settings.http_port or 0,
        settings.http_certificate,
        settings.http_key,
        tuple(map(str, settings.http_proxies)),
    )


def _identities(settings: Settings) -> "IdentityProvider | None":
    """Return Discord, if the settings name an application."""
    secret = settings.discord_client_secret
    if settings.discord_client_id is None or secret is None:
        return None
    from bot.remote import discord_oauth as discord  # noqa: PLC0415 - see the top

    return discord.DiscordIdentities(
        settings.discord_client_id,
        secret.get_secret_value(),
        settings.discord_api_base or discord.API,
        settings.discord_authorize_url or discord.PAGE,
    )


@asynccontextmanager
async def _discord(
    settings: "DiscordSettings",
    podium: OpenPodium,
    connection: ServiceConnection,
) -> AsyncIterator[str]:
    from bot.discord import client, context  # noqa: PLC0415 - see the top

    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        lease = timedelta(seconds=podium.lease_s)
        door = context.DiscordContext(podium.store, podium.clock, lease, connection=connection)
        group.create_task(client.serve(door, settings, stop), name=context.FRONT_END)
        try:
            yield context.FRONT_END
        finally:
            stop.set()


def discord_settings(settings: Settings) -> "DiscordSettings | None":
    """Return how the bot reaches Discord; None without a token."""
    token = settings.bot_token
    if token is None:
        return None
    from bot.discord.context import DiscordSettings  # noqa: PLC0415 - see the top

    return DiscordSettings(
        token.get_secret_value(),
        settings.discord_api_base,
        settings.discord_gateway_url,
        settings.discord_trusted_guilds,
    )


async def discord_invite(settings: Settings, application: int | None) -> str:
    """Return the link that adds an application's bot to a guild; by default the token's."""
    from bot.discord import setup_check  # noqa: PLC0415 - see the top

    if application is not None:
        return setup_check.bot_invite_link(application)
    door = discord_settings(settings)
    if door is None:
        raise UserError("no-token", "set DISCORD_TOKEN, or name the application with --application")
    try:
        return setup_check.bot_invite_link(await setup_check.application_of(door))
    except setup_check.DiscordUnavailableError as error:
        raise SetupError(f"{error}; name the application with --application") from error


async def check_discord(settings: Settings) -> "SetupReport":
    """Return what Discord says about the token's bot; SetupError if it rejects the token."""
    from bot.discord import setup_check  # noqa: PLC0415 - see the top

    try:
        return await setup_check.check_setup(_required_discord(settings))
    except setup_check.DiscordUnavailableError as error:
        raise SetupError(f"{error}; check the network, then run the command again") from error


async def welcome(settings: Settings, guild: int, board: str, store: "Store") -> str | None:
    """Post the first message in a guild's #submissions, created once; return the link to it."""
    from bot.discord import setup_check  # noqa: PLC0415 - see the top

    try:
        return await setup_check.welcome(_required_discord(settings), guild, board, store)
    except setup_check.DiscordUnavailableError as error:
        raise SetupError(f"{error}; run the command again") from error


def _required_discord(settings: Settings) -> "DiscordSettings":
    found = discord_settings(settings)
    if found is None:
        raise UserError("no-token", "there is no token; run `podium discord setup`")
    return found


def version() -> str:
    """Return Podium's version as pip reports it; empty in a checkout."""
    try:
        return importlib.metadata.version(_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return ""
