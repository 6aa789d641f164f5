"""Who may do what: roles by name, in the guild where a command is given."""

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import discord
import structlog

from bot.discord.context import door_of
from bot.domain.errors import UserError
from bot.services.moderation import Deed

ADMIN = "Leaderboard Admin"
CREATOR = "Leaderboard Creator"
_COLOURS = {ADMIN: discord.Colour.purple(), CREATOR: discord.Colour.blue()}
_log = structlog.get_logger(__name__)


def require(interaction: discord.Interaction[Any], *names: str) -> None:
    """UserError unless the person has one of the roles, or runs the guild, where that counts."""
    guild = interaction.guild
    if guild is None or not isinstance(interaction.user, discord.Member):
        raise UserError("not-allowed", "give this command on a server, where you have your roles")
    if not is_trusted(interaction.client, guild):
        raise UserError(
            "not-allowed",
            "roles of this server give no rights here; whoever runs the bot can name it in "
            "DISCORD_TRUSTED_GUILDS",
        )
    if not has_role(interaction, *names):
        raise UserError("not-allowed", f"this takes the role {' or '.join(names)}; ask an admin")


async def admin_deed(interaction: discord.Interaction[Any], reason: str) -> Deed:
    """What an admin does now, and why; UserError for anybody else."""
    require(interaction, ADMIN)
    actor = await door_of(interaction).person(interaction.user)
    return Deed(actor.id, reason)


def has_role(interaction: discord.Interaction[Any], *names: str) -> bool:
    """Whether the person has one of the roles here, or runs the guild."""
    guild, member = interaction.guild, interaction.user
    if guild is None or not isinstance(member, discord.Member):
        return False
    return is_trusted(interaction.client, guild) and holds_role(member, *names)


def holds_role(member: discord.Member, *names: str) -> bool:
    """Whether a member has one of the roles, or runs the guild, be its roles trusted or not."""
    held = {role.name for role in member.roles}
    return member.guild_permissions.administrator or bool(held & set(names))


def is_trusted(client: discord.Client, guild: discord.Guild) -> bool:
    """Whether roles of this guild count: a stranger may invite a public bot, and be admin there.

    The guilds that the installation names count. Where it names none, all of a private bot do,
    and of a public one those of the application's owners.
    """
    named = client.trusted_guilds if isinstance(client, Trusting) else frozenset()
    if named:
        return guild.id in named
    application = client.application
    if application is None:
        return False
    team = application.team
    owners = {application.owner.id} | ({each.id for each in team.members} if team else set())
    return not application.bot_public or guild.owner_id in owners


@runtime_checkable
class Trusting(Protocol):
    """A client that was told which guilds' roles count."""

    @property
    def trusted_guilds(self) -> frozenset[int]:
        """Ids of guilds; none: see `is_trusted`."""
        ...


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
