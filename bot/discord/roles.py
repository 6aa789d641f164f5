"""The accounts of Discord users, what their roles allow, and regular rechecks of both."""

import asyncio
from datetime import timedelta

import aiohttp
import discord
import structlog

from bot.discord.context import ADMIN_NEEDS, FRONT_END, DiscordContext, Interaction, context_of
from bot.discord.escaping import plain
from bot.domain.accounts import Rights
from bot.domain.board import NOBODY, Viewer
from bot.domain.errors import StoreError, UserError
from bot.domain.records import RightsGrant
from bot.services.moderation import Decision

ADMIN = "Leaderboard Admin"
CREATOR = "Leaderboard Creator"
_COLORS = {ADMIN: discord.Color.purple(), CREATOR: discord.Color.blue()}
_PERMISSIONS = {ADMIN: ADMIN_NEEDS}
"""The permissions of roles that the bot creates; an existing role is left as it is."""
PURPOSES = {ADMIN: "admin", CREATOR: "creator"}
"""The purpose in the store of the role that is made with this name."""
_GUILD_KIND = f"{FRONT_END}-guild"
"""The kind of the credentials that guilds confirm."""
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
        shown = " or ".join(_present_name(interaction, guild, name) for name in names)
        raise UserError("not-allowed", f"this needs the role {shown}; ask an admin")


def _present_name(interaction: Interaction, guild: discord.Guild, name: str) -> str:
    """Return the present name of the role that was made with this name."""
    role = _role_id(context_of(interaction), guild.id, name)
    found = None if role is None else guild.get_role(role)
    return name if found is None else found.name


async def admin_decision(interaction: Interaction, reason: str) -> Decision:
    """Return an admin's decision with its reason; UserError for everyone else."""
    require(interaction, ADMIN)
    actor = await context_of(interaction).person(interaction.user)
    return Decision(actor.id, reason)


def has_role(interaction: Interaction, *names: str) -> bool:
    """Return whether the person has one of the roles here, or manages the guild."""
    guild, member = interaction.guild, interaction.user
    if guild is None or not isinstance(member, discord.Member):
        return False
    context = context_of(interaction)
    return is_trusted(interaction.client, guild) and holds_role(context, member, *names)


def holds_role(context: DiscordContext, member: discord.Member, *names: str) -> bool:
    """Return whether a member has one of the roles or is an administrator, in any guild.

    A role counts by its id, whatever it is called now. By name it counts only where the bot has
    not stored an id yet, for example without the permission to make the role.
    """
    if member.guild_permissions.administrator:
        return True
    if context.snapshot.parts is None:
        return False
    wanted = {name: _role_id(context, member.guild.id, name) for name in names}
    return any(
        role.id == number or (number is None and role.name == name)
        for role in member.roles
        for name, number in wanted.items()
    )


def _role_id(context: DiscordContext, guild: int, name: str) -> int | None:
    """Return the id of the role that was made with this name, or chosen in its place."""
    key = guild_key(guild), PURPOSES[name]
    part = (context.snapshot.parts or {}).get(key)
    return None if part is None else int(part)


def guild_key(guild: int) -> str:
    """Return the guild's key in the store."""
    return f"{FRONT_END}:{guild}"


def is_trusted(client: discord.Client, guild: discord.Guild) -> bool:
    """Return whether roles of this guild give rights; a stranger may invite a public bot.

    The guilds named in the settings count. If none is named, every guild counts for a private bot,
    and for a public bot those that the application's owners own.
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


def require_choosable(interaction: Interaction, name: str, role: discord.Role) -> None:
    """Raise UserError for a role that everyone has, and for one that would lock the admin out."""
    if role.is_default():
        raise UserError("wrong-role", "every member has this role; choose another one")
    member = interaction.user
    keeps = isinstance(member, discord.Member) and (
        role in member.roles or member.guild_permissions.administrator
    )
    if name == ADMIN and not keeps:
        raise UserError(
            "wrong-role", "you do not have this role yourself; give it to yourself first"
        )


def role_words(interaction: Interaction, name: str) -> str:
    """Return the role that gives these rights as a mention; its name if it has no id yet."""
    guild = interaction.guild_id or 0
    role = _role_id(context_of(interaction), guild, name)
    return plain(name) if role is None else f"<@&{role}>"


async def make_role(guild: discord.Guild, name: str) -> discord.Role | None:
    """Return the oldest role of this name, or a new one; None if the bot may not make it."""
    named = (role for role in guild.roles if role.name == name)
    found = min(named, key=lambda role: role.id, default=None)
    if found is not None:
        return found
    if not guild.me.guild_permissions.manage_roles:
        _log.warning("a role is missing", action="role_missing", guild=guild.id, role=name)
        return None
    granted = _PERMISSIONS.get(name, discord.Permissions.none())
    return await guild.create_role(
        name=name, color=_COLORS[name], permissions=granted, reason="Podium needs it"
    )


def user_credential(user: int) -> str:
    """Return the credential of a user, which is also the account's identity."""
    return f"{FRONT_END}:{user}"


def role_credential(number: int) -> str:
    """Return the credential of everyone with a role."""
    return f"{FRONT_END}-role:{number}"


def guild_credential(guild: int) -> str:
    """Return the credential of every member of a guild, and of its channels."""
    return f"{_GUILD_KIND}:{guild}"


def channel_address(channel: int) -> str:
    """Return the address of a channel for notifications."""
    return f"{FRONT_END}-channel:{channel}"


async def viewer_of(interaction: Interaction) -> Viewer:
    """Return the person who used a command, with the credentials that Discord confirms."""
    context = context_of(interaction)
    user = interaction.user
    account = await context.person(user)
    credentials = frozenset({user_credential(user.id)})
    if isinstance(user, discord.Member):
        credentials |= _credentials_of(user)
        rights = rights_of(interaction.client, context, user)
        await context.store.rights.replace(account.id, guild_credential(user.guild.id), rights)
    else:
        wanted = frozenset[str]().union(
            *(each.access.credentials for each in await context.store.boards.all())
        )
        credentials |= await credentials_elsewhere(interaction.client, user.id, wanted)
    return Viewer(account.id, credentials, sees_all=has_role(interaction, ADMIN))


async def typing_viewer(interaction: Interaction) -> Viewer:
    """Return the person who types an option, as a viewer, without a request to Discord.

    In direct messages, the credentials are those that were last confirmed. The account is left out.
    """
    user, context = interaction.user, context_of(interaction)
    credentials = frozenset({user_credential(user.id)})
    if isinstance(user, discord.Member):
        held = credentials | _credentials_of(user)
        return Viewer(NOBODY, held, sees_all=has_role(interaction, ADMIN))

    async def stored() -> frozenset[str]:
        person = await context.store.people.find(user_credential(user.id))
        return frozenset() if person is None else (await rights_held(person.id)).credentials

    rights_held = context.store.rights.of
    return Viewer(NOBODY, credentials | await context.snapshot.cached(("rights", user.id), stored))


async def credentials_elsewhere(
    client: discord.Client, user: int, wanted: frozenset[str]
) -> frozenset[str]:
    """Return a user's credentials from those of the bot's guilds that confirm a wanted one."""
    credentials: frozenset[str] = frozenset()
    for guild in client.guilds:
        if wanted.isdisjoint(
            {guild_credential(guild.id), *(role_credential(each.id) for each in guild.roles)}
        ):
            continue
        try:
            credentials |= _credentials_of(await guild.fetch_member(user))
        except discord.NotFound:
            continue  # not a member there
    return credentials


def rights_of(client: discord.Client, context: DiscordContext, member: discord.Member) -> Rights:
    """Return the rights from a guild; its roles count only if it `is_trusted`."""
    trusted = is_trusted(client, member.guild)
    return Rights(
        _credentials_of(member),
        is_admin=trusted and holds_role(context, member, ADMIN),
        is_creator=trusted and holds_role(context, member, ADMIN, CREATOR),
    )


def _credentials_of(member: discord.Member) -> frozenset[str]:
    return frozenset(
        {guild_credential(member.guild.id), *(role_credential(each.id) for each in member.roles)}
    )


def channel_credentials(client: discord.Client, channel: int) -> frozenset[str]:
    """Return the credential that every reader of a channel has: membership of its guild."""
    guild = getattr(client.get_channel(channel), "guild", None)
    return frozenset() if guild is None else frozenset({guild_credential(guild.id)})


def mention(credential: str) -> str:
    """Return a person or role as a mention; another front end's credential unchanged."""
    kind, _, number = credential.partition(":")
    sign = {FRONT_END: "@", f"{FRONT_END}-role": "@&"}.get(kind)
    return plain(credential) if sign is None else f"<{sign}{number}>"


RECHECK_AFTER = timedelta(minutes=10)
"""How long after a check a member is checked again."""
RECHECK_EVERY_S = 60.0
MOST_RECHECKED = 50
"""The most members checked in one pass: a small part of the requests that Discord allows."""


async def recheck(client: discord.Client, context: DiscordContext) -> int:
    """Check the members unchecked for longest; return how many were checked."""
    stale = await context.store.rights.stale(_GUILD_KIND, RECHECK_AFTER, MOST_RECHECKED)
    for grant in stale:
        await _recheck_member(client, context, grant)
    return len(stale)


async def _recheck_member(
    client: discord.Client, context: DiscordContext, grant: RightsGrant
) -> None:
    rights = context.store.rights
    member = await _find_member(client, context, grant)
    if member is None:
        await rights.remove(grant.person, grant.source)
    else:
        await rights.replace(grant.person, grant.source, rights_of(client, context, member))


async def _find_member(
    client: discord.Client, context: DiscordContext, grant: RightsGrant
) -> discord.Member | None:
    """Return the member; None for a former member, or when the bot has left the guild."""
    person = await context.store.people.get(grant.person)
    kind, _, user = ("", "", "") if person is None else person.identity.partition(":")
    guild = client.get_guild(int(grant.source.partition(":")[2]))
    if kind != FRONT_END or guild is None:
        return None
    try:
        return await guild.fetch_member(int(user))
    except discord.NotFound:
        return None


async def run_rechecks(client: discord.Client, context: DiscordContext) -> None:
    """Check members again until cancelled, because stored rights also apply to HTTP requests.

    Discord reports changed members only with an intent that it grants to few bots. The bot
    therefore checks a few members at a time, starting with those unchecked for longest.
    """
    await client.wait_until_ready()
    while True:
        try:
            await recheck(client, context)
        except (StoreError, discord.DiscordException, aiohttp.ClientError, OSError) as error:
            _log.warning("rights were not rechecked", action="recheck_wait", error=repr(error))
        except Exception:  # noqa: BLE001  a bug with one member must not end the front end
            _log.exception("bug in a recheck", action="recheck_bug")
        await asyncio.sleep(RECHECK_EVERY_S)
