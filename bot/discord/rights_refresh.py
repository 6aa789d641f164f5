"""Asks Discord again for people's roles, so that a role lost there is lost over HTTP too.

Discord does not report changed members without an intent that it grants to few bots. So the bot
polls, a few members at a time, longest unchecked first.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import aiohttp
import discord
import structlog

from bot.discord.context import DOOR, DiscordContext
from bot.discord.roles import member, rights_of
from bot.domain.errors import StoreError
from bot.domain.records import RightsGrant

_log = structlog.get_logger(__name__)

AGE = timedelta(minutes=10)
"""How long after a check a member is checked again."""
LOOK_S = 60.0
AT_ONCE = 50
"""The most members checked in one pass: a small part of the requests that Discord allows."""


async def recheck(client: discord.Client, door: DiscordContext) -> int:
    """Check the members unchecked for longest; return how many were checked."""
    stale = await door.store.rights.stale(member_kind(), AGE, AT_ONCE)
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


@asynccontextmanager
async def rechecking(client: discord.Client, door: DiscordContext) -> AsyncIterator[None]:
    """Check periodically until the block ends."""
    task = asyncio.create_task(_run(client, door), name="rechecking")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _run(client: discord.Client, door: DiscordContext) -> None:
    await client.wait_until_ready()
    while True:
        try:
            await recheck(client, door)
        except (StoreError, discord.DiscordException, aiohttp.ClientError, OSError) as error:
            _log.warning("rights are not asked for", action="recheck_wait", error=repr(error))
        except Exception:  # noqa: BLE001  a bug with one member must not end the front end
            _log.exception("bug in a recheck", action="recheck_bug")
        await asyncio.sleep(LOOK_S)
