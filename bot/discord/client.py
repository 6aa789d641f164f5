"""The Discord client, and `serve`, which reconnects after failures."""

import asyncio
import hashlib
import json
import logging
import math
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import aiohttp
import discord
import structlog
from discord import app_commands
from discord.backoff import ExponentialBackoff
from discord.gateway import DiscordWebSocket
from discord.http import Route
from typing_extensions import override
from yarl import URL

from bot.discord import (
    buttons,
    channels,
    commands,
    notifications,
    pagination,
    responses,
    roles,
    standings_view,
)
from bot.discord import interaction_claims as claims
from bot.discord.alerts import AlertSender
from bot.discord.context import DiscordContext, DiscordSettings
from bot.discord.publication_thread import run_publications
from bot.discord.requests import limit_requests
from bot.discord.result_notifications import NotificationButton
from bot.discord.submission_thread import run_displays
from bot.discord.unfinished import run_resumption
from bot.domain.errors import SetupError, StoreError
from bot.services.alerts import run_alerts
from runners import plugins

_log = structlog.get_logger(__name__)

LONGEST_WAIT_S = 30.0
"""If Discord demands a longer wait, discord.py raises RateLimited, and other messages go first."""

logging.getLogger("discord.ui.view").addFilter(responses.is_worth_logging)


class Tree(app_commands.CommandTree["PodiumClient"]):
    """The command tree; handles all unexpected errors of commands."""

    @override
    async def on_error(
        self, interaction: discord.Interaction["PodiumClient"], error: app_commands.AppCommandError
    ) -> None:
        message = responses.error_message(error)
        if message is None:
            return
        try:
            if interaction.response.is_done():
                await interaction.followup.send(message, ephemeral=True)
            else:
                await interaction.response.send_message(message, ephemeral=True)
        except discord.HTTPException as send_error:
            if not responses.is_superseded(send_error):
                _log.warning("an error was not shown", action="untold", error=repr(send_error))


class PodiumClient(discord.Client):
    """One connection to Discord, with the context of its commands."""

    def __init__(
        self, context: DiscordContext, trusted_guilds: frozenset[int] = frozenset()
    ) -> None:
        # Only the guilds intent: commands include their own member, message and attachment.
        intents = discord.Intents(guilds=True)
        super().__init__(
            intents=intents,
            allowed_mentions=discord.AllowedMentions.none(),
            max_ratelimit_timeout=LONGEST_WAIT_S,
        )
        limit_requests(self)
        self.context = context
        self.trusted_guilds = trusted_guilds
        self.tree = Tree(self)

    @override
    async def setup_hook(self) -> None:
        self.add_dynamic_items(
            *(buttons.SubmissionButton, buttons.BoardButton, buttons.CheckButton),
            *(standings_view.PageButton, standings_view.PageSelect),
            *(standings_view.StandingsGpuSelect, pagination.ListPageButton, NotificationButton),
        )
        for name in plugins.names(commands):
            await plugins.load(commands, name).setup(self.tree)
        with suppress(StoreError):
            await self.context.snapshot.refresh(self.context.store)
        await self._publish_commands()

    async def on_guild_available(self, guild: discord.Guild) -> None:
        """At every start, create the roles and the channel that were never created."""
        await channels.prepare_guild(self.context, guild)

    async def on_guild_join(self, guild: discord.Guild) -> None:
        """Create roles and the channel when the bot is invited for the first time."""
        await channels.prepare_guild(self.context, guild)

    async def on_interaction(self, interaction: discord.Interaction["PodiumClient"]) -> None:
        """Answer clicks and forms that neither this process nor another one handles."""
        known = self._connection._view_store._dynamic_items  # noqa: SLF001  no public way
        await claims.answer_unhandled(interaction, known)

    async def _publish_commands(self) -> None:
        """Register the commands with Discord, unless they are unchanged."""
        own: list[Any] = [each.to_dict(self.tree) for each in self.tree.get_commands()]
        # Raw data from Discord: discord.py 2.7's own class loses the contexts of commands.
        registered: list[Any] = await self.http.get_global_commands(self.application_id or 0)
        if _digest(own) != _digest(registered):
            registered = [each.to_dict() for each in await self.tree.sync()]
            _log.info("commands were published", action="sync", commands=len(own))
        responses.COMMAND_IDS.update({each["name"]: int(each["id"]) for each in registered})


_COMPARED_KEYS = (
    "name", "description", "type", "options", "choices", "required", "autocomplete", "contexts",
    "min_value", "max_value", "min_length", "max_length", "default_member_permissions",
)  # fmt: skip


def _digest(commands_json: list[dict[str, Any]]) -> str:
    """Return a digest of those parts of commands that people see."""
    compared = map(_compared_fields, commands_json)
    text = json.dumps(sorted(compared, key=lambda command: (command["type"], command["name"])))
    return hashlib.sha256(text.encode()).hexdigest()


def _compared_fields(command: dict[str, Any]) -> dict[str, Any]:
    """Return a command's non-empty fields in `_COMPARED_KEYS`, and those of its options."""
    fields = {key: command[key] for key in _COMPARED_KEYS if command.get(key)}
    needed = "default_member_permissions"  # a number, which Discord returns as a text
    fields |= {needed: str(fields[needed])} if needed in fields else {}
    for key in ("options", "choices"):
        if key in fields:
            fields[key] = [_compared_fields(dict(each)) for each in fields[key]]
    return {"type": 1, "name": "", **fields}


def set_addresses(settings: DiscordSettings) -> None:
    """Use the configured addresses of Discord, if any. They are set on discord.py's classes."""
    if settings.api_base:
        Route.BASE = settings.api_base
    if settings.gateway_url:
        DiscordWebSocket.DEFAULT_GATEWAY = URL(settings.gateway_url)


class _Backoff(ExponentialBackoff[Literal[False]]):
    """Shorter waits: discord.py would wait up to 17 minutes between gateway connections."""

    def __init__(self) -> None:
        super().__init__()
        self._max = 5  # a random wait below 2 ** 5 seconds


# The bot has no use for voice, so it needs neither of the libraries that discord.py misses.
discord.VoiceClient.warn_nacl = False
discord.VoiceClient.warn_dave = False
discord.client.ExponentialBackoff = _Backoff  # type: ignore[attr-defined,assignment]


@asynccontextmanager
async def logged_in_client(
    context: DiscordContext, settings: DiscordSettings
) -> AsyncIterator[PodiumClient]:
    """Yield a client that is logged in; the caller must run its `connect`."""
    set_addresses(settings)
    async with PodiumClient(context, settings.trusted_guilds) as client:
        await client.login(settings.token)
        yield client


FIRST_WAIT_S = 5.0
"""Seconds between the first two logins; the wait doubles after each failure."""
MAX_WAIT_S = 30.0
"""The longest wait between two logins."""


async def serve(context: DiscordContext, settings: DiscordSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set; SetupError if Discord rejects the token before any login."""
    wait_s = FIRST_WAIT_S
    logged_in = False
    while not stop.is_set():
        try:
            async with logged_in_client(context, settings) as client:
                logged_in, wait_s = True, FIRST_WAIT_S
                await _session(client, context, stop)
        except discord.LoginFailure as error:
            if not logged_in:
                raise SetupError(
                    "Discord rejects DISCORD_TOKEN; copy it again from the application's Bot page"
                ) from error
            _log.error("Discord rejects the token now", action="token_refused")
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            message = "Discord is unavailable"
            _log.warning(message, action="discord_away", error=str(error) or repr(error))
        except Exception as error:  # noqa: BLE001 - a bug of this front end must not end judging
            _log.error("the Discord front end failed", action="incident", exc_info=error)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await stop.wait()
        wait_s = min(MAX_WAIT_S, 2 * wait_s)


async def _session(client: PodiumClient, context: DiscordContext, stop: asyncio.Event) -> None:
    """Run everything that belongs to one login, until `stop` or a lost connection."""
    context.connection.measure = lambda: _latency_s(client)
    gateway = asyncio.create_task(client.connect(reconnect=True), name="gateway")
    stopping = asyncio.create_task(stop.wait(), name="stopping")
    try:
        async with (
            run_displays(client, context),
            run_publications(client, context),
            _in_background(
                notices=notifications.NotificationSender(client, context).run(),
                alerts=AlertSender(client, context).run(),
                finding_alerts=run_alerts(context.store, context.clock, stop),
                snapshot=context.snapshot.run(context.store),
                rechecks=roles.run_rechecks(client, context),
                unfinished=run_resumption(client, context),
            ),
        ):
            await asyncio.wait({gateway, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        context.connection.measure = lambda: None
        stopping.cancel()
        await client.close()
        await gateway


@asynccontextmanager
async def _in_background(**work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines while the block runs, and cancel them when it ends."""
    tasks = [asyncio.create_task(each, name=name) for name, each in work.items()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def _latency_s(client: PodiumClient) -> float | None:
    """Return the latency of the last heartbeat, infinite before the first; None when offline."""
    if client.is_closed() or not client.is_ready():
        return None
    return math.inf if math.isnan(client.latency) else client.latency
