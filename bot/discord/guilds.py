"""What the bot needs in a guild: roles, a channel, and where submissions are accepted."""

from typing import Any

import discord
import structlog

from bot.discord.context import DOOR, DiscordContext
from bot.discord.roles import make_missing
from bot.domain.errors import UserError

SUBMISSIONS = "submissions"
"""The channel for submissions while no admin has allowed others."""
_log = structlog.get_logger(__name__)


def house(guild: int) -> str:
    """Return the guild's name in the store."""
    return f"{DOOR}:{guild}"


async def prepare(guild: discord.Guild) -> None:
    """Create missing roles and the missing channel, as far as the bot's permissions allow."""
    try:
        await make_missing(guild)
        if not any(channel.name == SUBMISSIONS for channel in guild.text_channels):
            await _make_channel(guild)
    except discord.HTTPException as error:
        _log.warning("a guild is not prepared", action="prepare", guild=guild.id, error=repr(error))


async def _make_channel(guild: discord.Guild) -> None:
    if guild.me.guild_permissions.manage_channels:
        await guild.create_text_channel(SUBMISSIONS, reason="Podium takes submissions here")
    else:
        _log.warning("no channel for submissions", action="channel_missing", guild=guild.id)


async def require_room(door: DiscordContext, interaction: discord.Interaction[Any]) -> None:
    """Raise UserError where no submissions are accepted; direct messages always are."""
    if interaction.guild_id is None:
        return
    channel = interaction.channel
    number, name = interaction.channel_id, getattr(channel, "name", None)
    if isinstance(channel, discord.Thread):
        number, name = channel.parent_id, getattr(channel.parent, "name", None)
    rooms = await door.store.moderation.rooms(house(interaction.guild_id))
    if str(number) in rooms or (not rooms and name == SUBMISSIONS):
        return
    where = ", ".join(f"<#{room}>" for room in rooms) or f"#{SUBMISSIONS}"
    raise UserError("wrong-channel", f"submit in {where} or in a direct message to the bot")
