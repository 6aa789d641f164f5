"""What this door vouches for: the credentials of people and of rooms, by which boards are seen."""

from typing import Any

import discord

from bot.discord.context import DOOR, door_of
from bot.discord.escaping import plain
from bot.discord.roles import ADMIN, CREATOR, has_role, holds_role, is_trusted
from bot.domain.access import Viewer
from bot.domain.rights import Rights


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
    door = door_of(interaction)
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
