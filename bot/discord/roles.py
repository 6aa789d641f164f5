"""Which person a Discord user is, and what their roles allow, which is checked again regularly."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import aiohttp
import discord
import structlog

from bot.discord.context import DOOR, DiscordContext, Interaction, context_of
from bot.discord.escaping import plain
from bot.domain.accounts import Rights
from bot.domain.board import Viewer
from bot.domain.errors import StoreError, UserError
from bot.domain.records import RightsGrant
from bot.services.moderation import Decision

ADMIN = "Leaderboard Admin"
CREATOR = "Leaderboard Creator"
_COLOURS = {ADMIN: discord.Colour.purple(), CREATOR: discord.Colour.blue()}
_log = structlog.get_logger(__name__)


def require(interaction: Interaction, *names: str) -> None:
    """Raise UserError unless the person has one of the roles, or manages a trusted guild."""
    guild = interaction.guild
    if guild is None or not isinstance(interaction.user, discord.Member):
        raise UserError("not-allowed", "run this command in a server, where you have your roles")
    if not is_trusted(interaction.client, guild):
        raise UserError(
            "not-allowed",
            "this server's roles give no rights; the bot's operator can add the server to "
            "DISCORD_TRUSTED_GUILDS",
        )
    if not has_role(interaction, *names):
        raise UserError("not-allowed", f"this needs the role {' or '.join(names)}; ask an admin")


async def admin_deed(interaction: Interaction, reason: str) -> Decision:
    """Return an admin's decision with its reason; UserError for everyone else."""
    require(interaction, ADMIN)
    actor = await context_of(interaction).person(interaction.user)
    return Decision(actor.id, reason)


def has_role(interaction: Interaction, *names: str) -> bool:
    """Return whether the person has one of the roles here, or manages the guild."""
    guild, member = interaction.guild, interaction.user
    if guild is None or not isinstance(member, discord.Member):
        return False
    return is_trusted(interaction.client, guild) and holds_role(member, *names)


def holds_role(member: discord.Member, *names: str) -> bool:
    """Return whether a member has one of the roles or manages the guild, trusted or not."""
    held = {role.name for role in member.roles}
    return member.guild_permissions.administrator or bool(held & set(names))


def is_trusted(client: discord.Client, guild: discord.Guild) -> bool:
    """Return whether roles of this guild count: strangers may invite a public bot.

    The guilds named in the settings count. If none is named, all guilds of a private bot count, and
    of a public bot those owned by the application's owners.
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
    """Create missing roles if the bot may; without them, only the guild's owner can act."""
    present = {role.name for role in guild.roles}
    for name in names:
        if name in present:
            continue
        if not guild.me.guild_permissions.manage_roles:
            _log.warning("a role is missing", action="role_missing", guild=guild.id, role=name)
            continue
        await guild.create_role(name=name, colour=_COLOURS[name], reason="Podium needs it")


def person(user: int) -> str:
    """Return the credential of a user, which is also the account's identity."""
    return f"{DOOR}:{user}"


def role(number: int) -> str:
    """Return the credential of everyone with a role."""
    return f"{DOOR}-role:{number}"


def member(guild: int) -> str:
    """Return the credential of every member of a guild, and of its channels."""
    return f"{DOOR}-guild:{guild}"


def room(channel: int) -> str:
    """Return the address of a channel for notifications."""
    return f"{DOOR}-channel:{channel}"


async def viewer_of(interaction: Interaction) -> Viewer:
    """Return who gave a command, with the credentials known here."""
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
            *(each.access.credentials for each in await door.store.boards.all())
        )
        held |= await held_elsewhere(interaction.client, user.id, wanted)
    return Viewer(account.id, held, sees_all=has_role(interaction, ADMIN))


async def held_elsewhere(
    client: discord.Client, user: int, wanted: frozenset[str]
) -> frozenset[str]:
    """Ask Discord which of the wanted credentials a user holds in other guilds."""
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
    """Return the rights from a guild; its roles count only if it `is_trusted`."""
    counts = is_trusted(client, who.guild)
    return Rights(
        _of_member(who),
        is_admin=counts and holds_role(who, ADMIN),
        is_creator=counts and holds_role(who, ADMIN, CREATOR),
    )


def _of_member(who: discord.Member) -> frozenset[str]:
    return frozenset({member(who.guild.id), *(role(each.id) for each in who.roles)})


def of_room(client: discord.Client, channel: int) -> frozenset[str]:
    """Return the credential that all readers of a guild's channel surely have: membership."""
    found = client.get_channel(channel)
    guild = getattr(found, "guild", None)
    return frozenset() if guild is None else frozenset({member(guild.id)})


def mention(credential: str) -> str:
    """Return a person or role as a mention; another front end's credential unchanged."""
    kind, _, number = credential.partition(":")
    sign = {DOOR: "@", f"{DOOR}-role": "@&"}.get(kind)
    return plain(credential) if sign is None else f"<{sign}{number}>"


RECHECK_AFTER = timedelta(minutes=10)
"""How long after a check a member is checked again."""
RECHECK_EVERY_S = 60.0
MOST_RECHECKED = 50
"""The most members checked in one pass: a small part of the requests that Discord allows."""


async def recheck(client: discord.Client, door: DiscordContext) -> int:
    """Check the members unchecked for longest; return how many were checked."""
    stale = await door.store.rights.stale(member_kind(), RECHECK_AFTER, MOST_RECHECKED)
    for vouched in stale:
        await _recheck_one(client, door, vouched)
    return len(stale)


def member_kind() -> str:
    """Return the kind of rights sources that are guilds."""
    return member(0).partition(":")[0]


async def _recheck_one(client: discord.Client, door: DiscordContext, vouched: RightsGrant) -> None:
    rights = door.store.rights
    found = await _find(client, door, vouched)
    if found is None:
        await rights.forget(vouched.person, vouched.source)
        return
    await rights.note(vouched.person, vouched.source, rights_of(client, found))


async def _find(
    client: discord.Client, door: DiscordContext, vouched: RightsGrant
) -> discord.Member | None:
    """Return the member; None for a former member, or when the bot has left the guild."""
    person = await door.store.people.get(vouched.person)
    kind, _, user = ("", "", "") if person is None else person.identity.partition(":")
    guild = client.get_guild(int(vouched.source.partition(":")[2]))
    if kind != DOOR or guild is None:
        return None
    try:
        return await guild.fetch_member(int(user))
    except discord.NotFound:
        return None


async def rechecking(client: discord.Client, door: DiscordContext) -> None:
    """Check again until cancelled, so that a role lost on Discord is lost over HTTP too.

    Discord does not report changed members without an intent that it grants to few bots. So the
    bot polls, a few members at a time, longest unchecked first.
    """
    await client.wait_until_ready()
    while True:
        try:
            await recheck(client, door)
        except (StoreError, discord.DiscordException, aiohttp.ClientError, OSError) as error:
            _log.warning("rights are not asked for", action="recheck_wait", error=repr(error))
        except Exception:  # noqa: BLE001  a bug with one member must not end the front end
            _log.exception("bug in a recheck", action="recheck_bug")
        await asyncio.sleep(RECHECK_EVERY_S)
