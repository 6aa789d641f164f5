"""Tells admins of alerts in the channels that they chose: one message each, edited at its end."""

import asyncio
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import aiohttp
import discord
import structlog

from bot.discord.channels import channel_of
from bot.discord.context import FRONT_END, DiscordContext
from bot.discord.escaping import MESSAGE_LIMIT, discord_time, plain
from bot.discord.roles import channel_address, is_trusted
from bot.domain.alerts import AlertMessage
from bot.domain.errors import StoreError

ALERTS = "alerts"
"""The purpose in the store of the channel that admins chose for alerts."""
POLL_S = 3.0
_MOST_WAIT_S = 900.0
_READ_BACK = 50
_TRY_SHARE = 5 / 6
"""The fraction of its lease after which an attempt is stopped."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AlertSender:
    """Tells alerts in one process."""

    client: discord.Client
    context: DiscordContext
    owner: str = field(default_factory=lambda: f"discord-{secrets.token_hex(6)}")

    async def run(self) -> None:
        """Tell alerts until cancelled."""
        await self.client.wait_until_ready()
        while True:
            try:
                await self.tell()
            except StoreError as error:
                _log.warning("the store is unavailable", action="alerts_wait", error=str(error))
            except Exception:  # noqa: BLE001  a bug with one alert must not end the others
                _log.exception("bug in an alert", action="alert_bug")
            await asyncio.sleep(POLL_S)

    async def tell(self) -> None:
        """Send and edit what is due."""
        channels = self._channels()
        if not channels:
            return
        lease = self.context.lease
        for told in await self.context.store.alerts.claim(channels, self.owner, lease):
            await self._attempt(told)

    def _channels(self) -> list[str]:
        """Return the addresses of the chosen channels, of servers whose roles give rights."""
        parts = self.context.snapshot.parts or {}
        chosen = {guild: part for (guild, purpose), part in parts.items() if purpose == ALERTS}
        trusted = [each for each in self.client.guilds if is_trusted(self.client, each)]
        found = [chosen.get(f"{FRONT_END}:{each.id}", "") for each in trusted]
        return [channel_address(int(part)) for part in found if part]

    async def _attempt(self, told: AlertMessage) -> None:
        alerts = self.context.store.alerts
        try:
            async with asyncio.timeout(_TRY_SHARE * self.context.lease.total_seconds()):
                message = await self._deliver(told)
        except (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError) as error:
            wait = timedelta(seconds=min(_MOST_WAIT_S, 2.0 ** min(told.tries, 10)))
            await alerts.retry_later(told, self.owner, wait)
            _log.warning("an alert has to wait", action="alert_again", error=repr(error))
            return
        await alerts.mark_told(told, self.owner, str(message))

    async def _deliver(self, told: AlertMessage) -> int:
        """Send the message, or edit the one that was sent; return its id."""
        number = int(told.addressee.rpartition(":")[2])
        channel = await channel_of(self.client, number)
        if channel is None:
            raise discord.ClientException(f"channel {number} is deleted or hidden")
        text, nonce = alert_text(told), f"alert-{told.alert}"
        sent = int(told.message) if told.message else await self._earlier(channel, told)
        if sent is None:
            return (await channel.send(text, nonce=nonce)).id
        with suppress(discord.NotFound):  # a message that a person deleted is not sent again
            await channel.get_partial_message(sent).edit(content=text)
        return sent

    async def _earlier(self, channel: discord.TextChannel, told: AlertMessage) -> int | None:
        """Return the message of an earlier attempt, whose response was lost."""
        if told.tries < 2:
            return None
        async for message in channel.history(limit=_READ_BACK):
            if message.author == self.client.user and _beginning(told) in message.content:
                return message.id
        return None


def _beginning(told: AlertMessage) -> str:
    """Return what the message says from its first version to its last."""
    return f"{plain(told.text)[: MESSAGE_LIMIT // 2]}\nSince {discord_time(told.began_at)}"


def alert_text(told: AlertMessage) -> str:
    """Return the message: what is wrong since when, or until when it was."""
    if told.ended_at is None:
        return f"⚠️ {_beginning(told)}"
    return f"✅ {_beginning(told)}, ended {discord_time(told.ended_at)}"
