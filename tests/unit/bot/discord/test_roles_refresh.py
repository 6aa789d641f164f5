from types import SimpleNamespace
from typing import cast

import aiohttp
import discord

from bot.discord.context import DiscordContext
from bot.discord.roles import (
    ADMIN,
    RECHECK_AFTER,
    guild_credential,
    holds_role,
    recheck,
    role_credential,
)
from bot.domain.accounts import Rights
from bot.domain.ids import PersonId
from tests.doubles.place import Place

GUILD = 7


def client(*members: SimpleNamespace) -> discord.Client:
    """A client in one guild whose roles count, with these members."""
    guild = SimpleNamespace(id=GUILD, owner_id=1)
    known = {each.id: each for each in members}
    for each in members:
        each.guild = guild

    async def fetch_member(user: int) -> SimpleNamespace:
        if user not in known:
            response = SimpleNamespace(status=404, reason="Not Found")
            raise discord.NotFound(cast("aiohttp.ClientResponse", response), "none")
        return known[user]

    guild.fetch_member = fetch_member
    application = SimpleNamespace(bot_public=False, owner=SimpleNamespace(id=1), team=None)
    found = SimpleNamespace(
        application=application, get_guild=lambda number: guild if number == GUILD else None
    )
    return cast("discord.Client", found)


def one(user: int, *roles: str) -> SimpleNamespace:
    held = [SimpleNamespace(id=90 + number, name=name) for number, name in enumerate(roles)]
    permissions = SimpleNamespace(administrator=False)
    return SimpleNamespace(id=user, roles=held, guild_permissions=permissions)


async def met(place: Place, user: int, guild: int = GUILD) -> PersonId:
    """Somebody who was an admin when the context last met them."""
    person = (await place.store.people.ensure(f"discord:{user}", str(user))).id
    seen = Rights(frozenset({guild_credential(guild)}), is_admin=True, is_creator=True)
    await place.store.rights.replace(person, guild_credential(guild), seen)
    return person


async def test_a_lost_role_is_lost_and_a_new_one_counts(place: Place) -> None:
    lost, kept = await met(place, 5), await met(place, 6)
    context = DiscordContext(place.store, place.clock)
    await place.store.moderation.keep_part(f"discord:{GUILD}", "creator", "90")
    await context.snapshot.refresh(place.store)
    found = client(one(5), one(6, "Kernel authors"))
    assert await recheck(found, context) == 0
    place.clock.advance(RECHECK_AFTER.total_seconds() + 1)
    assert await recheck(found, context) == 2
    assert await place.store.rights.of(lost) == Rights(frozenset({guild_credential(GUILD)}))
    held = frozenset({guild_credential(GUILD), role_credential(90)})
    assert await place.store.rights.of(kept) == Rights(held, is_creator=True)
    assert await recheck(found, context) == 0


async def test_a_role_counts_by_its_id_and_no_longer_by_its_name(place: Place) -> None:
    context = DiscordContext(place.store, place.clock)
    renamed, copied = one(5, "Kernel admins"), one(6, "another", "Leaderboard Admin")
    del copied.roles[0]  # so that the ids differ: 90 was renamed, 91 has the name now
    client(renamed, copied)
    assert not holds_role(context, cast("discord.Member", copied), ADMIN)  # nothing is read yet
    await context.snapshot.refresh(place.store)
    assert holds_role(context, cast("discord.Member", copied), ADMIN)
    await place.store.moderation.keep_part(f"discord:{GUILD}", "admin", "90")
    await context.snapshot.refresh(place.store)
    assert holds_role(context, cast("discord.Member", renamed), ADMIN)
    assert not holds_role(context, cast("discord.Member", copied), ADMIN)


async def test_who_has_left_and_where_the_bot_has_left_vouches_for_nothing(place: Place) -> None:
    gone, elsewhere = await met(place, 5), await met(place, 6, guild=8)
    place.clock.advance(RECHECK_AFTER.total_seconds() + 1)
    assert await recheck(client(), DiscordContext(place.store, place.clock)) == 2
    assert await place.store.rights.of(gone) == Rights()
    assert await place.store.rights.of(elsewhere) == Rights()
