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
from bot.discord.context import DOOR, DiscordContext
from bot.discord.escaping import MOST, line, plain, timed
from bot.domain.board import Board
from bot.domain.errors import StoreError
from bot.domain.notifications import Delivery, Notification, NotificationKind, deadline_words
from bot.services.notify import still_wanted
from runners.contract.task import TaskDefinition

_log = structlog.get_logger(__name__)

TRY_SHARE = 5 / 6
"""The share of the lease that one delivery may take, so that an unresponsive Discord cannot block
the others. The store refuses an attempt that outlives its lease; the nonce prevents a duplicate."""
LOOK_S = 2.0
"""Seconds between two polls of an empty outbox."""
MOST_WAIT_S = 900.0
_READ_BACK = 50
"""How many messages are searched for a delivery in doubt."""
_FOR_GOOD = frozenset({400, 403, 404})
"""Responses that a retry would not change."""


_WORDS = {
    NotificationKind.DEADLINE: "deadlines a day ahead",
    NotificationKind.LOST_RANK: "ranks that you lose",
    NotificationKind.RECORD: "records",
}


@dataclass(frozen=True, slots=True)
class _Reader:
    """Where to deliver, and the credentials that everyone who reads there has."""

    channel: discord.abc.Messageable
    credentials: frozenset[str]


@dataclass(slots=True)
class Notices:
    """Delivers notifications in one process."""

    client: discord.Client
    door: DiscordContext
    owner: str = field(default_factory=lambda: f"discord-{secrets.token_hex(6)}")

    async def run(self) -> None:
        """Deliver until cancelled."""
        await self.client.wait_until_ready()
        outbox = self.door.store.outbox
        while True:
            try:
                while letters := await outbox.claim(DOOR, self.owner, self.door.lease):
                    for letter in letters:
                        await self._try(letter)
            except StoreError as error:
                _log.warning("the store is away", action="notices_wait", error=str(error))
            except Exception:  # noqa: BLE001  a bug with one notification must not block the others
                _log.exception("bug in a notice", action="notice_bug")
            await asyncio.sleep(LOOK_S)

    async def _try(self, letter: Delivery) -> None:
        outbox = self.door.store.outbox
        try:
            async with asyncio.timeout(TRY_SHARE * self.door.lease.total_seconds()):
                refusal = await self._deliver(letter)
        except (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError) as error:
            if _is_for_good(error):
                await outbox.mark_refused(letter.id, self.owner, repr(error))
                _log.info("news is refused", action="notice_refused", error=repr(error))
                return
            wait = timedelta(seconds=min(MOST_WAIT_S, 2.0**letter.tries))
            await outbox.retry_later(letter.id, self.owner, wait)
            _log.warning("news has to wait", action="notice_again", error=repr(error))
            return
        if refusal is None:
            await outbox.mark_sent(letter.id, self.owner)
        else:
            await outbox.mark_refused(letter.id, self.owner, refusal)

    async def _deliver(self, letter: Delivery) -> str | None:
        """Send it; return the reason if it must not be sent."""
        news = letter.news
        reader = await self._reader(letter)
        if reader is None or not await still_wanted(
            self.door.store, self.door.clock, news, reader.credentials
        ):
            return "not wanted any more, or not for this addressee"
        text = (await self._words(news))[:MOST]
        if not letter.doubtful or not await self._stands_there(reader.channel, text):
            await reader.channel.send(text, nonce=f"news-{letter.id}")
        return None

    async def _words(self, news: Notification) -> str:
        """Return the text, with a deadline in each reader's own time zone."""
        board = await self.door.store.boards.get(news.board)
        if news.kind is not NotificationKind.DEADLINE or board is None or board.deadline is None:
            return plain(news.text)
        return timed(news.text, {deadline_words(board.deadline): board.deadline})

    async def _reader(self, letter: Delivery) -> _Reader | None:
        kind, _, number = letter.news.addressee.partition(":")
        if kind == DOOR:
            return await self._person(letter, int(number))
        channel = self.client.get_channel(int(number))
        if channel is None:
            channel = await self.client.fetch_channel(int(number))
        if not isinstance(channel, discord.abc.GuildChannel | discord.Thread):
            return None
        if not isinstance(channel, discord.abc.Messageable):
            return None
        return _Reader(channel, frozenset({roles.member(channel.guild.id)}))

    async def _person(self, letter: Delivery, user: int) -> _Reader:
        board = await self.door.store.boards.get(letter.news.board)
        wanted = frozenset[str]() if board is None else board.access.credentials
        held = await roles.held_elsewhere(self.client, user, wanted)
        channel = await self.client.create_dm(discord.Object(user))
        return _Reader(channel, held | {roles.person(user)})

    async def _stands_there(self, channel: discord.abc.Messageable, text: str) -> bool:
        try:
            async for message in channel.history(limit=_READ_BACK):
                if message.author == self.client.user and message.content == text:
                    return True
        except discord.Forbidden:
            pass  # the nonce alone must suffice
        return False


def _is_for_good(error: Exception) -> bool:
    return isinstance(error, discord.HTTPException) and error.status in _FOR_GOOD


def kinds_in_words(kinds: Iterable[NotificationKind]) -> str:
    """Return in words which kinds somebody is told of."""
    return ", ".join(_WORDS[kind] for kind in sorted(kinds)) or "nothing"


_INTRODUCTION = 1100
_GPUS = 8
"""How many GPU types are named; a name has at most 32 characters."""


def season(deadline: datetime | None) -> str:
    """Return until when a board is open, in the reader's own time zone."""
    if deadline is None:
        return "It has no deadline."
    at = int(deadline.timestamp())
    return f"It closes <t:{at}:F> (<t:{at}:R>)."


def announcement(board: Board, task: TaskDefinition) -> str:
    """Return name, GPU types, deadline and task, within one message."""
    head = f"**New leaderboard: {line(board.name)}** on {gpu_words(board.gpus)}"
    return f"{head}\n{season(board.deadline)}\n{_introduction(task.description.strip())}"


def gpu_words(gpus: Sequence[str]) -> str:
    """Return the GPU types, or the first ones and the number of the others."""
    shown = gpus if len(gpus) <= _GPUS else gpus[: _GPUS - 1]
    more = "" if len(gpus) <= _GPUS else f" and {len(gpus) - len(shown)} more"
    return plain(", ".join(shown)) + more


def _introduction(about: str) -> str:
    """Return the description, or as many whole lines as fit."""
    safe = plain(about)
    if len(safe) <= _INTRODUCTION:
        return safe
    kept = ""
    for each in about.splitlines():
        longer = f"{kept}{plain(each)}\n"
        if len(longer) > _INTRODUCTION:
            break
        kept = longer
    kept = kept or f"{line(about, _INTRODUCTION // 4)}\n"
    return f"{kept}(`/leaderboard task` has all of it)"
