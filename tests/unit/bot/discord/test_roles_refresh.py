from types import SimpleNamespace
from typing import cast

import aiohttp
import discord

from bot.discord.context import DiscordContext
from bot.discord.roles import RECHECK_AFTER, guild_credential, recheck, role_credential
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
    found = client(one(5), one(6, "Leaderboard Creator"))
    assert await recheck(found, context) == 0
    place.clock.advance(RECHECK_AFTER.total_seconds() + 1)
    assert await recheck(found, context) == 2
    assert await place.store.rights.of(lost) == Rights(frozenset({guild_credential(GUILD)}))
    held = frozenset({guild_credential(GUILD), role_credential(90)})
    assert await place.store.rights.of(kept) == Rights(held, is_creator=True)
    assert await recheck(found, context) == 0


async def test_who_has_left_and_where_the_bot_has_left_vouches_for_nothing(place: Place) -> None:
    gone, elsewhere = await met(place, 5), await met(place, 6, guild=8)
    place.clock.advance(RECHECK_AFTER.total_seconds() + 1)
    assert await recheck(client(), DiscordContext(place.store, place.clock)) == 2
    assert await place.store.rights.of(gone) == Rights()
    assert await place.store.rights.of(elsewhere) == Rights()
