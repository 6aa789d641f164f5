"""The threads of boards: a private one per person and board, a public one per board, in each guild.

Each is created once, by one process under a lease in the store. A guild may have 1,000 active
threads; beyond `MOST_ACTIVE`, the least recently used private ones without a run are archived.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import discord
import structlog

from bot.discord import channels, draw
from bot.discord.context import FRONT_END, DiscordContext
from bot.domain.board import Board
from bot.domain.errors import StoreError
from bot.domain.ids import PersonId
from bot.domain.submission import ThreadKey

T = TypeVar("T")
_log = structlog.get_logger(__name__)

MOST_ACTIVE = 800
"""With more active threads in a guild, old ones are archived; Discord allows 1,000."""
_ARCHIVED_AT_ONCE = 20
"""The most threads that are archived before one is created."""
_EXISTS = 160004
"""Discord's code when a message already has a thread."""
_SEARCHED = 100
"""How many recent messages are searched for the one under which a public thread is opened."""


class ThreadBusyError(Exception):
    """Another process creates the thread now."""


@dataclass(frozen=True, slots=True)
class GuildThreads:
    """Finds, creates, archives and unarchives the threads of boards."""

    client: discord.Client
    context: DiscordContext

    async def private(
        self, channel: discord.TextChannel, board: Board, reader: tuple[PersonId, int], lost: int
    ) -> int:
        """Return the thread of `reader`, an account and its Discord user; create it if needed.

        If `lost` is not 0, it is the id of a deleted thread, which is replaced. ThreadBusyError if
        another process creates it; Discord's errors.
        """
        person, user = reader
        key = ThreadKey(FRONT_END, str(channel.guild.id), board.id, person)

        async def create(*, may_exist: bool) -> int:
            account = await self.context.store.people.get(person)
            name = draw.private_thread_name(board, "" if account is None else account.name, person)
            return await self._private_thread(channel, name, user, may_exist=may_exist)

        return await self._created_once(channel.guild, key, create, lost)

    async def of_check(
        self, channel: discord.TextChannel, name: str, user: int, *, may_exist: bool
    ) -> int:
        """Return the thread for the check of a task, with its creator in it; create it if needed.

        Only the process that holds the publication calls this.
        """

        async def create() -> int:
            return await self._private_thread(channel, name, user, may_exist=may_exist)

        return await self._below_limit(channel.guild, create)

    async def _private_thread(
        self, channel: discord.TextChannel, name: str, user: int, *, may_exist: bool
    ) -> int:
        found = await self._find_own(channel, name) if may_exist else None
        if found is not None and found.archived:
            await found.edit(archived=False)
        thread = found or await channels.open_thread(channel, name)
        await thread.add_user(discord.Object(user))
        return thread.id

    async def public(self, channel: discord.TextChannel, board: Board, lost: int) -> int:
        """Return the board's public thread; create it under a message if needed."""
        key = ThreadKey(FRONT_END, str(channel.guild.id), board.id)

        async def create(*, may_exist: bool) -> int:
            text = draw.results_headline(board)
            found = await self._find_message(channel, text, lost) if may_exist else None
            nonce = f"new-{lost}" if lost else f"results-{board.id}"  # at most 25 characters
            message = found or await channel.send(text, nonce=nonce, silent=True)
            if not message.flags.has_thread:
                await self._open_below(message, draw.public_thread_name(board))
            return message.id  # the thread has the same id

        return await self._created_once(channel.guild, key, create, lost)

    async def _open_below(self, message: discord.Message, name: str) -> None:
        try:
            await message.create_thread(name=name, auto_archive_duration=channels.WEEK_MIN)
        except discord.HTTPException as error:
            if error.code != _EXISTS:
                raise

    async def _created_once(
        self,
        guild: discord.Guild,
        key: ThreadKey,
        create: Callable[..., Awaitable[int]],
        lost: int,
    ) -> int:
        threads = self.context.store.board_threads
        known = await threads.find(key)
        if known is not None and int(known) != lost:
            return int(known)
        owner = secrets.token_hex(8)
        claims = await threads.claim(key, owner, self.context.lease, str(lost) if lost else None)
        if claims is None:
            raise ThreadBusyError
        try:
            async with self._renewed(key, owner):
                made = await self._below_limit(guild, partial(create, may_exist=claims > 1))
        except BaseException:
            await threads.release(key, owner)
            raise
        await threads.save(key, owner, str(made))
        return made

    @asynccontextmanager
    async def _renewed(self, key: ThreadKey, owner: str) -> AsyncIterator[None]:
        """Renew the lease during a creation, which may wait for Discord's rate limit."""
        threads = self.context.store.board_threads

        async def renew() -> None:
            while True:
                await asyncio.sleep(self.context.heartbeat_s)
                with suppress(StoreError):
                    await threads.renew(key, owner, self.context.lease)

        renewing = asyncio.create_task(renew(), name="thread lease")
        try:
            yield
        finally:
            renewing.cancel()

    async def use(self, guild: discord.Guild, board: Board, person: PersonId, thread: int) -> None:
        """Unarchive a person's thread before something is sent or edited there."""
        key = ThreadKey(FRONT_END, str(guild.id), board.id, person)
        await self.context.store.board_threads.use(key)
        await self.unarchive(guild, thread)

    async def unarchive(self, guild: discord.Guild, thread: int) -> None:
        """Make a thread active, if it is not; NotFound and Forbidden when it is lost."""
        if guild.get_thread(thread) is not None:  # active threads are known
            return
        found = await self.client.fetch_channel(thread)
        if isinstance(found, discord.Thread) and found.archived:
            await self._below_limit(guild, partial(found.edit, archived=False))

    async def _below_limit(self, guild: discord.Guild, action: Callable[[], Awaitable[T]]) -> T:
        """Archive old threads before one becomes active, and more if Discord refuses it."""
        await self._archive_old(guild, len(guild.threads) + 1 - MOST_ACTIVE)
        try:
            return await action()
        except discord.HTTPException as error:
            if error.code != channels.TOO_MANY_THREADS:
                raise
        await self._archive_old(guild, _ARCHIVED_AT_ONCE)
        return await action()

    async def _archive_old(self, guild: discord.Guild, count: int) -> None:
        if count <= 0:
            return
        idle = await self.context.store.board_threads.idle(FRONT_END, str(guild.id))
        active = {str(each.id): each for each in guild.threads if not each.archived}
        old = [each for each in active.values() if self._is_of_a_run(each)]
        old += [active[each] for each in idle if each in active]
        for each in old[: min(count, _ARCHIVED_AT_ONCE)]:
            try:
                await each.edit(archived=True)
            except (discord.NotFound, discord.Forbidden) as error:
                _log.info("a thread is not archived", action="not_archived", error=repr(error))

    def _is_of_a_run(self, thread: discord.Thread) -> bool:
        """Return whether it is a private thread for one run, as earlier versions created them."""
        me = self.client.user
        is_own = me is not None and thread.owner_id == me.id and thread.is_private()
        return is_own and thread.name.startswith("#")

    async def _find_own(self, channel: discord.TextChannel, name: str) -> discord.Thread | None:
        """Return the bot's private thread of this name, active or archived."""
        for active in await channel.guild.active_threads():
            is_own = channels.is_own(self.client, active) and active.parent_id == channel.id
            if is_own and active.name == name:
                return active
        async for each in channel.archived_threads(private=True, joined=True, limit=None):
            if channels.is_own(self.client, each) and each.name == name:
                return each
        return None

    async def _find_message(
        self, channel: discord.TextChannel, text: str, lost: int
    ) -> discord.Message | None:
        """Return the bot's message with this text, unless its thread is the lost one."""
        async for each in channel.history(limit=_SEARCHED):
            is_own = each.author == self.client.user and each.content == text
            if is_own and each.id != lost:
                return each
        return None
