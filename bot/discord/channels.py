"""Finds channels and threads, sets up a server, and says where submissions are accepted."""

from collections.abc import Coroutine
from contextlib import closing, suppress
from datetime import timedelta
from typing import Any, Literal

import discord
import structlog
from pydantic import BaseModel, ConfigDict

from bot.discord.context import (
    FRONT_END,
    DiscordContext,
    Interaction,
    context_of,
    interaction_key,
)
from bot.discord.roles import PURPOSES, guild_key, make_role, user_credential
from bot.domain.errors import StoreError, UserError
from bot.domain.submission import NewDisplay


class SubmissionDisplay(BaseModel):
    """The channel that a submission came from, and what was sent where."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: int
    user: int
    in_guild: bool
    answer: str | None = None
    """The interaction whose answer, seen only by the person, shows the submission first."""
    answered: bool = False
    """Whether that answer has the report, or can no longer be edited."""
    answer_pending: bool = False
    """Whether the report there says that a confirmation is pending."""
    thread: int | None = None
    """The private thread that has the report; None in direct messages."""
    direct: int | None = None
    """The person's direct messages, used when there is no private thread."""
    unseen: bool = False
    """Whether neither is possible, so that the person must request the report."""
    live: int | None = None
    """The live message there, of a submission that takes longer than its answer can be edited."""
    first: int = 0
    """The first message of the report there."""
    reported: int = 0
    """How many messages of the report were sent."""
    awaited: bool = False
    """Whether the report says that a confirmation is pending."""
    confirmed: bool = False
    """Whether the end of the confirmation was reported."""
    told: bool = False
    """Whether the notification of the result was sent."""
    announced: int | None = None
    """The public line of a ranked submission."""

    @property
    def private(self) -> int:
        """Return the thread or direct messages that only the person reads."""
        return self.direct or self.thread or self.channel


def display_for(interaction: Interaction) -> NewDisplay:
    """Return a new display, for the submission that an interaction makes."""
    state = SubmissionDisplay(
        channel=home_channel(interaction),
        user=interaction.user.id,
        in_guild=interaction.guild_id is not None,
        answer=interaction_key(interaction),
    )
    return NewDisplay(FRONT_END, state.model_dump_json())


def home_channel(interaction: Interaction) -> int:
    """Return an interaction's channel; for a thread, the channel that the thread is in."""
    channel = interaction.channel
    return channel.parent_id if isinstance(channel, discord.Thread) else interaction.channel_id or 0


OPEN_CONVERSATION = "open a direct message to me and use any command in it"
"""What a person does to get direct messages."""


async def save_conversation(interaction: Interaction) -> None:
    """Store where the person has begun direct messages; only there may the bot send any."""
    if interaction.guild_id is not None:
        return
    context = context_of(interaction)
    with suppress(StoreError):  # the next command saves it
        person = await context.person(interaction.user)
        await context.store.displays.save_conversation(person.id, str(interaction.channel_id))


async def direct_messages(
    client: discord.Client, context: DiscordContext, user: int
) -> discord.PartialMessageable | None:
    """Return the direct messages with a user; None if that user has never begun them.

    The bot never begins any, because Discord blocks bots that begin many. All that it sends
    directly goes to a channel from here.
    """
    person = await context.store.people.find(user_credential(user))
    found = None if person is None else await context.store.displays.conversation(person.id)
    return None if found is None else client.get_partial_messageable(int(found))


EDIT_INTERVAL_S = 1.5
"""Seconds between two edits of one message: a channel accepts five messages or edits in 5 s."""
HOUR_MIN: Literal[60] = 60
WEEK_MIN: Literal[10080] = 10080
"""Minutes of inactivity after which Discord archives a thread."""
ARCHIVED = 50083
"""Discord's code for an edit in an archived thread."""
TOO_MANY_THREADS = 160006
"""Discord's code when a server may have no further active thread."""


def bot_permissions(channel: discord.TextChannel) -> discord.Permissions:
    """Return the bot's permissions in a channel; all of them until the guild is known."""
    me = _own_member(channel.guild)
    return discord.Permissions.all() if me is None else channel.permissions_for(me)


def _own_member(guild: discord.Guild) -> discord.Member | None:
    return guild.me  # None until the gateway has sent the guild, despite the stubs


def is_lost(error: discord.HTTPException) -> bool:
    """Return whether Discord's error means a thread that is lost or cannot be created.

    A lost thread is deleted, inaccessible or archived.
    """
    lost = isinstance(error, discord.NotFound | discord.Forbidden)
    return lost or error.code in {ARCHIVED, TOO_MANY_THREADS}


def has_private_threads(channel: discord.TextChannel) -> bool:
    """Return whether the bot may open private threads there; announcement channels have none."""
    return not channel.is_news() and may_open_thread(bot_permissions(channel))


def may_open_thread(permissions: discord.Permissions) -> bool:
    """Return whether a private thread can be opened and written to."""
    return (
        permissions.view_channel
        and permissions.create_private_threads
        and permissions.send_messages_in_threads
    )


async def channel_of(client: discord.Client, number: int) -> discord.TextChannel | None:
    """Return the text channel, even one for announcements; None when it is deleted or hidden."""
    found: object = client.get_channel(number)
    if found is None:
        try:
            found = await client.fetch_channel(number)
        except (discord.NotFound, discord.Forbidden):
            return None
    return found if isinstance(found, discord.TextChannel) else None


def is_own(client: discord.Client, thread: discord.Thread) -> bool:
    """Return whether the bot created this private thread."""
    return client.user is not None and thread.owner_id == client.user.id and thread.is_private()


async def open_thread(channel: discord.TextChannel, name: str) -> discord.Thread:
    """Create a private thread with only the bot in it."""
    return await channel.create_thread(
        name=name,
        type=discord.ChannelType.private_thread,
        invitable=False,
        auto_archive_duration=HOUR_MIN,
    )


SUBMISSIONS = "submissions"
"""The only channel that accepts submissions until an admin allows others."""
_log = structlog.get_logger(__name__)


_MAKING = timedelta(seconds=60)
"""How long one process may take to make a role or channel, before another one tries."""


async def prepare_guild(context: DiscordContext, guild: discord.Guild) -> None:
    """Create the roles and the channel as far as the bot may, each once and never again.

    Existing ones with these names are used. A renamed one stays in use, and a deleted one is not
    created again.
    """
    try:
        for name, purpose in PURPOSES.items():
            await _make_once(context, guild, purpose, make_role(guild, name))
        await _make_once(context, guild, SUBMISSIONS, _make_channel(guild))
    except (discord.HTTPException, StoreError) as error:
        _log.warning("a guild is not prepared", action="prepare", guild=guild.id, error=repr(error))


async def _make_once(
    context: DiscordContext,
    guild: discord.Guild,
    purpose: str,
    making: Coroutine[Any, Any, discord.abc.Snowflake | None],
) -> None:
    moderation, key = context.store.moderation, guild_key(guild.id)
    with closing(making):
        if not await moderation.claim_part(key, purpose, _MAKING):
            return
        made = await making
    if made is not None:
        await moderation.keep_part(key, purpose, str(made.id))
        await context.snapshot.refresh(context.store)


async def _make_channel(guild: discord.Guild) -> discord.TextChannel | None:
    for channel in guild.text_channels:
        if channel.name == SUBMISSIONS:
            return channel
    if guild.me.guild_permissions.manage_channels:
        return await guild.create_text_channel(SUBMISSIONS, reason="Podium accepts submissions")
    _log.warning("no channel for submissions", action="channel_missing", guild=guild.id)
    return None


async def require_submission_channel(context: DiscordContext, interaction: Interaction) -> None:
    """Raise UserError in a channel that accepts no submissions; direct messages always do."""
    if interaction.guild_id is None:
        return
    channel = interaction.channel
    number, name = interaction.channel_id, getattr(channel, "name", None)
    if isinstance(channel, discord.Thread):
        number, name = channel.parent_id, getattr(channel.parent, "name", None)
    moderation, key = context.store.moderation, guild_key(interaction.guild_id)
    allowed = await moderation.channels(key)
    if not allowed:
        own = (await moderation.parts()).get((key, SUBMISSIONS))
        allowed = () if own is None else (own,)
    if str(number) in allowed or (not allowed and name == SUBMISSIONS):
        return
    where = ", ".join(f"<#{each}>" for each in allowed if _exists(interaction, each))
    if where:
        raise UserError("wrong-channel", f"submit in {where} or in a direct message to the bot")
    raise UserError(
        "wrong-channel",
        "submit in a direct message to the bot; an admin can allow submissions in a channel with "
        "`/admin channel-allow`",
    )


def _exists(interaction: Interaction, channel: str) -> bool:
    """Return whether a channel exists; True if the bot cannot know."""
    guild = interaction.guild
    return guild is None or guild.get_channel(int(channel)) is not None
