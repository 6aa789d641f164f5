"""Channels and threads: finding them, and where a submission is shown."""

from typing import Any, Literal

import discord
from pydantic import BaseModel, ConfigDict

from bot.discord.context import DOOR
from bot.domain.submission import NewDisplay


class SubmissionDisplay(BaseModel):
    """The channel that a submission came from, and what stands there already."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: int
    user: int
    in_guild: bool
    thread: int | None = None
    """The private thread of the submission; in direct messages there is none."""
    direct: int | None = None
    """The person's direct messages, where the channel takes no private thread or has lost it."""
    unseen: bool = False
    """Whether Discord takes neither, so that the person has to ask for the report."""
    live: int | None = None
    """The message that moves with the submission."""
    reported: int = 0
    """How many messages of the full report are sent."""
    announced: int | None = None
    """The public line of a ranked submission."""
    opened: bool = False
    """Whether the public line has its thread."""

    @property
    def private(self) -> int:
        """Where the person alone reads of the submission."""
        return self.direct or self.thread or self.channel


def display_here(interaction: discord.Interaction[Any]) -> NewDisplay:
    """A display in the channel of an interaction, or in that channel's parent."""
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
"""After which a thread in which nothing happens is put away."""
ARCHIVED = 50083
_TOO_MANY_THREADS = 160006


def may_here(channel: discord.TextChannel) -> discord.Permissions:
    """What the bot may do in a channel; all of it while the guild is not known yet."""
    me = _me(channel.guild)
    return discord.Permissions.all() if me is None else channel.permissions_for(me)


def _me(guild: discord.Guild) -> discord.Member | None:
    return guild.me  # before the gateway has told of the guild it is None, whatever the stubs say


def is_lost(error: discord.HTTPException) -> bool:
    """Whether a thread is gone, out of reach, put away, or cannot be made here."""
    gone = isinstance(error, discord.NotFound | discord.Forbidden)
    return gone or error.code in {ARCHIVED, _TOO_MANY_THREADS}


def takes_threads(may: discord.Permissions) -> bool:
    """Whether a private thread can be opened and written to."""
    return may.view_channel and may.create_private_threads and may.send_messages_in_threads


async def channel_of(client: discord.Client, number: int) -> discord.TextChannel | None:
    """The channel; None where it is gone, out of sight, or of a kind without private threads."""
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
    """The bot's private thread of this name, if an earlier try has made one."""
    me = client.user
    for each in await channel.guild.active_threads():
        mine = me is not None and each.owner_id == me.id and each.is_private()
        if mine and each.parent_id == channel.id and each.name == name:
            return each
    return None


async def new_thread(channel: discord.TextChannel, name: str) -> discord.Thread:
    """A private thread with nobody but the bot in it."""
    return await channel.create_thread(
        name=name,
        type=discord.ChannelType.private_thread,
        invitable=False,
        auto_archive_duration=_DAY_MIN,
    )


async def woken(client: discord.Client, place: SubmissionDisplay) -> bool:
    """Whether the place's thread, which was put away, takes messages again."""
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
    """A public thread beneath a message, which has its number; none where there is one already."""
    if doubtful and (await channel.fetch_message(message)).flags.has_thread:
        return
    await channel.get_partial_message(message).create_thread(
        name=name, auto_archive_duration=_DAY_MIN
    )
