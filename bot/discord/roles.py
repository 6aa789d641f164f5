"""Who a Discord user is to Podium, and what roles let them do."""

from collections.abc import Iterable
from typing import Any

import discord
import structlog

from bot.discord.context import DOOR, context_of
from bot.discord.escaping import plain
from bot.domain.accounts import Rights
from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.services.moderation import Decision

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


async def admin_deed(interaction: discord.Interaction[Any], reason: str) -> Decision:
    """What an admin does now, and why; UserError for anybody else."""
    require(interaction, ADMIN)
    actor = await context_of(interaction).person(interaction.user)
    return Decision(actor.id, reason)


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
    named: frozenset[int] = getattr(client, "trusted_guilds", frozenset())
    if named:
        return guild.id in named
    application = client.application
    if application is None:
        return False
    team = application.team
    owners = {application.owner.id} | ({each.id for each in team.members} if team else set())
    return not application.bot_public or guild.owner_id in owners


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


def person(user: int) -> str:
    """The credential of one user, which is the account's identity as well."""
    return f"{DOOR}:{user}"


def role(number: int) -> str:
    """The credential of everyone with a role."""
    return f"{DOOR}-role:{number}"


def member(guild: int) -> str:
    """The credential of every member of a guild, and of its rooms."""
    return f"{DOOR}-guild:{guild}"


def room(channel: int) -> str:
    """The address of a channel, to which news can go."""
    return f"{DOOR}-channel:{channel}"


async def viewer_of(interaction: discord.Interaction[Any]) -> Viewer:
    """Who gave a command, with what can be known of them in this place."""
    door = context_of(interaction)
    user = interaction.user
    account = await door.person(user)
    held = frozenset({person(user.id)})
    if isinstance(user, discord.Member):
        held |= _of_member(user)
        rights = rights_of(interaction.client, user)
        await door.store.rights.note(account.id, member(user.guild.id), rights)
    else:
        wanted = frozenset[str]().union(
            *(each.access.named for each in await door.store.boards.all())
        )
        held |= await held_elsewhere(interaction.client, user.id, wanted)
    return Viewer(account.id, held, sees_all=has_role(interaction, ADMIN))


async def held_elsewhere(
    client: discord.Client, user: int, wanted: frozenset[str]
) -> frozenset[str]:
    """What a user holds in the guilds that the wanted credentials are of, asked of Discord."""
    held: frozenset[str] = frozenset()
    for guild in client.guilds:
        if wanted.isdisjoint({member(guild.id), *(role(each.id) for each in guild.roles)}):
            continue
        try:
            held |= _of_member(await guild.fetch_member(user))
        except discord.NotFound:
            continue  # not a member there
    return held


def rights_of(client: discord.Client, who: discord.Member) -> Rights:
    """What a guild vouches for; its roles give rights only where they count (`is_trusted`)."""
    counts = is_trusted(client, who.guild)
    return Rights(
        _of_member(who),
        is_admin=counts and holds_role(who, ADMIN),
        is_creator=counts and holds_role(who, ADMIN, CREATOR),
    )


def _of_member(who: discord.Member) -> frozenset[str]:
    return frozenset({member(who.guild.id), *(role(each.id) for each in who.roles)})


def of_room(client: discord.Client, channel: int) -> frozenset[str]:
    """What everyone who reads a channel of a guild has: membership, and nothing else for sure."""
    found = client.get_channel(channel)
    guild = getattr(found, "guild", None)
    return frozenset() if guild is None else frozenset({member(guild.id)})


def mention(credential: str) -> str:
    """A person or a role as it is written in a message; another door's credential as it is."""
    kind, _, number = credential.partition(":")
    sign = {DOOR: "@", f"{DOOR}-role": "@&"}.get(kind)
    return plain(credential) if sign is None else f"<{sign}{number}>"
