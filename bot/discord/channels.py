"""Finds channels and threads, and stores where a submission is shown."""

from typing import Any, Literal

import discord
from pydantic import BaseModel, ConfigDict

from bot.discord.context import DOOR
from bot.domain.submission import NewDisplay


class SubmissionDisplay(BaseModel):
    """The channel that a submission came from, and what was sent there."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: int
    user: int
    in_guild: bool
    thread: int | None = None
    """The submission's private thread; None in direct messages."""
    direct: int | None = None
    """The person's direct messages, used when the channel has no private thread."""
    unseen: bool = False
    """Whether Discord accepts neither, so that the person must request the report."""
    live: int | None = None
    """The live message, edited while the submission progresses."""
    reported: int = 0
    """How many messages of the full report were sent."""
    announced: int | None = None
    """The public line of a ranked submission."""
    opened: bool = False
    """Whether the public line has a thread."""

    @property
    def private(self) -> int:
        """Return the thread or direct messages that only the person reads."""
        return self.direct or self.thread or self.channel


def display_here(interaction: discord.Interaction[Any]) -> NewDisplay:
    """Return a display in an interaction's channel, or in that channel's parent."""
    channel = interaction.channel
    place = SubmissionDisplay(
        channel=channel.parent_id
        if isinstance(channel, discord.Thread)
        else interaction.channel_id or 0,
        user=interaction.user.id,
        in_guild=interaction.guild_id is not None,
    )
    return NewDisplay(DOOR, place.model_dump_json())


_DAY_MIN: Literal[1440] = 1440
"""Minutes of inactivity after which Discord archives a thread."""
ARCHIVED = 50083
_TOO_MANY_THREADS = 160006


def may_here(channel: discord.TextChannel) -> discord.Permissions:
    """Return the bot's permissions in a channel; all of them until the guild is known."""
    me = _me(channel.guild)
    return discord.Permissions.all() if me is None else channel.permissions_for(me)


def _me(guild: discord.Guild) -> discord.Member | None:
    return guild.me  # None until the gateway has sent the guild, despite the stubs


def is_lost(error: discord.HTTPException) -> bool:
    """Return whether a thread is deleted, inaccessible, archived, or cannot be created."""
    gone = isinstance(error, discord.NotFound | discord.Forbidden)
    return gone or error.code in {ARCHIVED, _TOO_MANY_THREADS}


def takes_threads(may: discord.Permissions) -> bool:
    """Return whether a private thread can be opened and written to."""
    return may.view_channel and may.create_private_threads and may.send_messages_in_threads


async def channel_of(client: discord.Client, number: int) -> discord.TextChannel | None:
    """Return the channel; None when it is deleted, hidden or has no private threads."""
    found: object = client.get_channel(number)
    if found is None:
        try:
            found = await client.fetch_channel(number)
        except (discord.NotFound, discord.Forbidden):
            return None
    return found if isinstance(found, discord.TextChannel) else None


async def own_thread(
    client: discord.Client, channel: discord.TextChannel, name: str
) -> discord.Thread | None:
    """Return the bot's private thread of this name, if an earlier attempt created one."""
    me = client.user
    for each in await channel.guild.active_threads():
        mine = me is not None and each.owner_id == me.id and each.is_private()
        if mine and each.parent_id == channel.id and each.name == name:
            return each
    return None


async def new_thread(channel: discord.TextChannel, name: str) -> discord.Thread:
    """Create a private thread with only the bot in it."""
    return await channel.create_thread(
        name=name,
        type=discord.ChannelType.private_thread,
        invitable=False,
        auto_archive_duration=_DAY_MIN,
    )


async def woken(client: discord.Client, place: SubmissionDisplay) -> bool:
    """Return whether the display's archived thread could be reopened."""
    if place.thread is None:
        return False
    try:
        found = await client.fetch_channel(place.thread)
        if not isinstance(found, discord.Thread):
            return False
        await found.edit(archived=False)
    except (discord.NotFound, discord.Forbidden):
        return False
    return True


async def open_beneath(
    channel: discord.TextChannel, message: int, name: str, *, doubtful: bool
) -> None:
    """Open a public thread under a message, with the message's id, unless there is one."""
    if doubtful and (await channel.fetch_message(message)).flags.has_thread:
        return
    await channel.get_partial_message(message).create_thread(
        name=name, auto_archive_duration=_DAY_MIN
    )
