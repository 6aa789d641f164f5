"""Sends alerts to the channels that admins chose: one message each, edited when the alert ends."""

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
    """Sends the alerts of one process."""

    client: discord.Client
    context: DiscordContext
    owner: str = field(default_factory=lambda: f"discord-{secrets.token_hex(6)}")

    async def run(self) -> None:
        """Send alerts until cancelled."""
        await self.client.wait_until_ready()
        while True:
            try:
                await self.send_due()
            except StoreError as error:
                _log.warning("the store is unavailable", action="alerts_wait", error=str(error))
            except Exception:  # noqa: BLE001  a bug with one alert must not end the others
                _log.exception("bug in an alert", action="alert_bug")
            await asyncio.sleep(POLL_S)

    async def send_due(self) -> None:
        """Send and edit the messages that are due."""
        channels = self._channels()
        if not channels:
            return
        lease = self.context.lease
        for claimed in await self.context.store.alerts.claim(channels, self.owner, lease):
            await self._attempt(claimed)

    def _channels(self) -> list[str]:
        """Return the addresses of the chosen channels in servers whose roles give rights."""
        parts = self.context.snapshot.parts or {}
        chosen = {guild: part for (guild, purpose), part in parts.items() if purpose == ALERTS}
        trusted = [each for each in self.client.guilds if is_trusted(self.client, each)]
        found = [chosen.get(f"{FRONT_END}:{each.id}", "") for each in trusted]
        return [channel_address(int(part)) for part in found if part]

    async def _attempt(self, claimed: AlertMessage) -> None:
        alerts = self.context.store.alerts
        try:
            async with asyncio.timeout(_TRY_SHARE * self.context.lease.total_seconds()):
                message = await self._deliver(claimed)
        except (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError) as error:
            wait = timedelta(seconds=min(_MOST_WAIT_S, 2.0 ** min(claimed.tries, 10)))
            await alerts.retry_later(claimed, self.owner, wait)
            _log.warning("an alert has to wait", action="alert_again", error=repr(error))
            return
        await alerts.mark_sent(claimed, self.owner, str(message))

    async def _deliver(self, claimed: AlertMessage) -> int:
        """Send the message, or edit the one that was sent; return its id."""
        number = int(claimed.addressee.rpartition(":")[2])
        channel = await channel_of(self.client, number)
        if channel is None:
            raise discord.ClientException(f"channel {number} is deleted or hidden")
        text, nonce = alert_text(claimed), f"alert-{claimed.alert}"
        sent = int(claimed.message) if claimed.message else await self._earlier(channel, claimed)
        if sent is None:
            return (await channel.send(text, nonce=nonce)).id
        with suppress(discord.NotFound):  # a message that a person deleted is not sent again
            await channel.get_partial_message(sent).edit(content=text)
        return sent

    async def _earlier(self, channel: discord.TextChannel, claimed: AlertMessage) -> int | None:
        """Return the id of the message of an earlier attempt, whose response was lost."""
        if claimed.tries < 2:
            return None
        async for message in channel.history(limit=_READ_BACK):
            if message.author == self.client.user and _beginning(claimed) in message.content:
                return message.id
        return None


def _beginning(claimed: AlertMessage) -> str:
    """Return the beginning of the message, which is the same in each of its versions."""
    return f"{plain(claimed.text)[: MESSAGE_LIMIT // 2]}\nSince {discord_time(claimed.began_at)}"


def alert_text(claimed: AlertMessage) -> str:
    """Return the message: what is wrong since when, or until when it was."""
    if claimed.ended_at is None:
        return f"⚠️ {_beginning(claimed)}"
    return f"✅ {_beginning(claimed)}, ended {discord_time(claimed.ended_at)}"
