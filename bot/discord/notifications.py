"""Delivers notifications, and announces boards.

Each delivery is held under a lease and has a nonce, by which Discord detects duplicates for a few
minutes. A retry also reads the channel's recent messages, because the first reply may have been
lost.
"""

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import aiohttp
import discord
import structlog

from bot.discord import roles
from bot.discord.channels import direct_messages
from bot.discord.context import FRONT_END, DiscordContext
from bot.discord.escaping import MESSAGE_LIMIT, discord_time, line, markdown, with_discord_times
from bot.domain.board import Board
from bot.domain.errors import StoreError
from bot.domain.notifications import Delivery, Notification, NotificationKind, deadline_words
from bot.services.notify import still_wanted
from runners.contract.task import TaskDefinition

_log = structlog.get_logger(__name__)

TRY_SHARE = 5 / 6
"""The fraction of its lease after which an attempt is stopped, so that the others can start.

The store refuses the result of an attempt that outlives its lease."""
POLL_S = 2.0
"""Seconds between two polls of an empty outbox."""
MOST_WAIT_S = 900.0
"""The longest wait between two attempts."""
_READ_BACK = 50
"""How many recent messages are searched for one that may have been sent."""
_PERMANENT = frozenset({400, 403, 404})
"""Responses that a retry would not change."""


_WORDS = {
    NotificationKind.COMPETITION: "competitions that open or close",
    NotificationKind.DEADLINE: "deadlines a day ahead",
    NotificationKind.LOST_RANK: "ranks that you lose",
    NotificationKind.RECORD: "records",
    NotificationKind.RESULT: "results of your long runs",
}
"""The words for each kind of notification, when a person or channel has switched it on."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """Where to deliver, and the credentials that everyone who reads there has."""

    channel: discord.abc.Messageable
    credentials: frozenset[str]


@dataclass(slots=True)
class NotificationSender:
    """Delivers notifications in one process."""

    client: discord.Client
    context: DiscordContext
    owner: str = field(default_factory=lambda: f"discord-{secrets.token_hex(6)}")

    async def run(self) -> None:
        """Deliver until cancelled."""
        await self.client.wait_until_ready()
        outbox = self.context.store.outbox
        while True:
            try:
                while deliveries := await outbox.claim(FRONT_END, self.owner, self.context.lease):
                    for delivery in deliveries:
                        await self._attempt(delivery)
            except StoreError as error:
                _log.warning("the store is unavailable", action="notices_wait", error=str(error))
            except Exception:  # noqa: BLE001  a bug with one notification must not block the others
                _log.exception("bug in a notification", action="notice_bug")
            await asyncio.sleep(POLL_S)

    async def _attempt(self, delivery: Delivery) -> None:
        outbox = self.context.store.outbox
        try:
            async with asyncio.timeout(TRY_SHARE * self.context.lease.total_seconds()):
                refusal = await self._deliver(delivery)
        except (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError) as error:
            if _is_permanent(error):
                await outbox.mark_refused(delivery.id, self.owner, repr(error))
                _log.info("a notification was refused", action="notice_refused", error=repr(error))
                return
            wait = timedelta(seconds=min(MOST_WAIT_S, 2.0**delivery.tries))
            await outbox.retry_later(delivery.id, self.owner, wait)
            _log.warning("a notification has to wait", action="notice_again", error=repr(error))
            return
        if refusal is None:
            await outbox.mark_sent(delivery.id, self.owner)
        else:
            await outbox.mark_refused(delivery.id, self.owner, refusal)

    async def _deliver(self, delivery: Delivery) -> str | None:
        """Send a notification; if it must not be sent, return why."""
        notification = delivery.notification
        reader = await self._reader(delivery)
        if reader is None or not await still_wanted(
            self.context.store, self.context.clock, notification, reader.credentials
        ):
            return "not wanted any more, or not for this addressee"
        text = (await self._text(notification))[:MESSAGE_LIMIT]
        if not delivery.doubtful or not await self._was_sent(reader.channel, text):
            await reader.channel.send(text, nonce=f"news-{delivery.id}")
        return None

    async def _text(self, notification: Notification) -> str:
        """Return the text, with a deadline in each reader's own time zone."""
        moments = {}
        if notification.kind is NotificationKind.DEADLINE and notification.board is not None:
            board = await self.context.store.boards.get(notification.board)
            if board is not None and board.deadline is not None:
                moments[deadline_words(board.deadline)] = board.deadline
        return with_discord_times(notification.text, moments)

    async def _reader(self, delivery: Delivery) -> _Reader | None:
        kind, _, number = delivery.notification.addressee.partition(":")
        if kind == FRONT_END:
            return await self._person(delivery, int(number))
        channel = self.client.get_channel(int(number))
        if channel is None:
            channel = await self.client.fetch_channel(int(number))
        if not isinstance(channel, discord.abc.GuildChannel | discord.Thread):
            return None
        if not isinstance(channel, discord.abc.Messageable):
            return None
        return _Reader(channel, frozenset({roles.guild_credential(channel.guild.id)}))

    async def _person(self, delivery: Delivery, user: int) -> _Reader | None:
        channel = await direct_messages(self.client, self.context, user)
        if channel is None:
            return None
        number = delivery.notification.board
        board = None if number is None else await self.context.store.boards.get(number)
        wanted = frozenset[str]() if board is None else board.access.credentials
        held = await roles.credentials_elsewhere(self.client, user, wanted)
        return _Reader(channel, held | {roles.user_credential(user)})

    async def _was_sent(self, channel: discord.abc.Messageable, text: str) -> bool:
        try:
            async for message in channel.history(limit=_READ_BACK):
                if message.author == self.client.user and message.content == text:
                    return True
        except discord.Forbidden:
            pass  # without the history, only the nonce prevents a duplicate
        return False


def _is_permanent(error: Exception) -> bool:
    return isinstance(error, discord.HTTPException) and error.status in _PERMANENT


def describe_kinds(kinds: Iterable[NotificationKind]) -> str:
    """Return in words which kinds of notification are switched on."""
    return ", ".join(_WORDS[kind] for kind in sorted(kinds)) or "nothing"


_INTRODUCTION = 1100
"""The most characters of a task's description in an announcement."""
_GPUS = 8
"""How many GPU types are named; a name has at most 32 characters."""


def closing_line(deadline: datetime | None) -> str:
    """Return a sentence about a board's deadline, in the reader's own time zone."""
    return "It has no deadline." if deadline is None else f"It closes {discord_time(deadline)}."


def announcement(board: Board, task: TaskDefinition) -> str:
    """Return name, GPU types, deadline and task, within one message."""
    head = f"**New leaderboard: {line(board.name)}** on {gpu_words(board.gpus)}"
    return f"{head}\n{closing_line(board.deadline)}\n{_introduction(task.description.strip())}"


def gpu_words(gpus: Sequence[str]) -> str:
    """Return the GPU types, or the first ones and the number of the others."""
    shown = gpus if len(gpus) <= _GPUS else gpus[: _GPUS - 1]
    more = "" if len(gpus) <= _GPUS else f" and {len(gpus) - len(shown)} more"
    return line(", ".join(shown), 40 * _GPUS) + more


def _introduction(about: str) -> str:
    """Return the description, or as many whole lines as fit."""
    safe = markdown(about)
    if len(safe) <= _INTRODUCTION:
        return safe
    lines = about[:_INTRODUCTION].splitlines()[:-1]
    while len(beginning := markdown("\n".join(lines))) > _INTRODUCTION:
        lines.pop()
    beginning = beginning or line(about, _INTRODUCTION // 4)
    return f"{beginning}\n(`/leaderboard task` has all of it)"
