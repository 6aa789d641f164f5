"""Who may do what: roles by name, in the guild where a command is given."""

from collections.abc import Iterable
from typing import Any

import discord
import structlog

from bot.domain.errors import UserError

ADMIN = "Leaderboard Admin"
CREATOR = "Leaderboard Creator"
_COLOURS = {ADMIN: discord.Colour.purple(), CREATOR: discord.Colour.blue()}
_log = structlog.get_logger(__name__)


def require(interaction: discord.Interaction[Any], *names: str) -> None:
    """UserError unless the person has one of the roles, or runs the guild."""
    if not isinstance(interaction.user, discord.Member):
        raise UserError("not-allowed", "give this command on a server, where you have your roles")
    if not has_role(interaction, *names):
        raise UserError("not-allowed", f"this takes the role {' or '.join(names)}; ask an admin")


def has_role(interaction: discord.Interaction[Any], *names: str) -> bool:
    """Whether the person has one of the roles here, or runs the guild."""
    member = interaction.user
    if not isinstance(member, discord.Member):
        return False
    held = {role.name for role in member.roles}
    return member.guild_permissions.administrator or bool(held & set(names))


async def make_missing(guild: discord.Guild, names: Iterable[str] = _COLOURS) -> None:
    """Create the roles that a guild lacks, where the bot may; without them its owner can act."""
    present = {role.name for role in guild.roles}
    for name in names:
        if name in present:
            continue
        if not guild.me.guild_permissions.manage_roles:
            _log.warning("a role is missing", action="role_missing", guild=guild.id, role=name)
            continue
        await guild.create_role(name=name, colour=_COLOURS[name], reason="Podium needs it")
