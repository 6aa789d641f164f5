"""Resumes interactions that a process of this front end claimed but did not finish."""

import asyncio
import json
import secrets
from contextlib import suppress
from datetime import timedelta
from typing import Any

import discord
import structlog

from bot.discord.context import DOOR, DiscordContext
from bot.discord.interaction_claims import TAKEN, Taken
from bot.discord.responses import LastingAnswer, is_passing
from bot.domain.errors import StoreError
from bot.domain.records import REQUEST_TTL, OpenRequest

LOOK_S = 1.0
"""Seconds between two polls for interactions that no process holds."""
FORGET_EVERY = 60
"""Polls between two deletions of expired tokens."""
SILENT = timedelta(seconds=5)
"""How long a lease must have expired before it is taken over: its holder may be slow."""
MOST_TRIES = 3
GIVEN_UP = (
    "Your command failed: {why}. Nothing is stored unless a thread shows a submission from "
    "it. Run the command again."
)
_log = structlog.get_logger(__name__)


async def taking_up(client: discord.Client, door: DiscordContext) -> None:
    """Resume interactions until cancelled."""
    await client.wait_until_ready()
    looks = 0
    while True:
        try:
            if looks % FORGET_EVERY == 0:
                await door.store.interactions.forget()
            await take_up(client, door)
        except StoreError as error:
            _log.warning("the store is away", action="interactions_wait", error=str(error))
        except Exception as error:  # noqa: BLE001  a bug must not end the polling
            _log.error("bug in taking up", action="incident", exc_info=error)
        looks += 1
        await asyncio.sleep(LOOK_S)


async def take_up(client: discord.Client, door: DiscordContext) -> int:
    """Claim unheld interactions and dispatch them again; return how many."""
    owner, interactions = secrets.token_hex(8), door.store.interactions
    found = await interactions.unfinished(DOOR, owner, door.lease, SILENT)
    away = False
    for each in found:
        away = away or not await _is_taken_up(client, door, each, owner)
        if away:
            await interactions.leave(each.id, owner, door.lease)
    return len(found)


async def _is_taken_up(
    client: discord.Client, door: DiscordContext, unfinished: OpenRequest, owner: str
) -> bool:
    """Dispatch it again; return False while Discord is unavailable, so that it must wait."""
    _log.info("taken up again", action="interaction_again", id=unfinished.id)
    try:
        await _take_up_one(client, door, unfinished, owner)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001  a bug with one must not end the others
        refused = isinstance(error, discord.HTTPException) and error.status == 401
        if is_passing(error) or refused or client.is_closed():
            _log.warning("not taken up", action="interactions_wait", error=repr(error))
            return False
        _log.error("bug in taking up", action="incident", id=unfinished.id, exc_info=error)
        await door.store.interactions.finish(unfinished.id, owner)
    return True


async def _take_up_one(
    client: discord.Client, door: DiscordContext, unfinished: OpenRequest, owner: str
) -> None:
    asked = json.loads(unfinished.request)
    why = None
    payload = await _asked_again(client, unfinished, asked)
    if payload is None:
        payload, why = await _of_user(client, unfinished, asked), "I can no longer reach the server"
    elif unfinished.tries > MOST_TRIES:
        why = f"it was started {MOST_TRIES} times, and the bot stopped each time"
    elif door.clock.now() - unfinished.at > REQUEST_TTL:
        why = "it is more than a day old"
    state: Any = client._connection  # noqa: SLF001  no public way to dispatch again
    if why is None:
        reset = TAKEN.set(Taken(unfinished.id, owner, asked["answers"]))
        try:
            state.parse_interaction_create(payload)  # its task inherits the claim by context
        finally:
            TAKEN.reset(reset)
        return
    _log.warning("given up", action="interaction_given_up", id=unfinished.id, why=why)
    await LastingAnswer(discord.Interaction(data=payload, state=state)).say(
        GIVEN_UP.format(why=why)
    )
    await door.store.interactions.finish(unfinished.id, owner)


async def _asked_again(
    client: discord.Client, unfinished: OpenRequest, asked: dict[str, Any]
) -> Any | None:  # noqa: ANN401  what Discord sends
    """Return the event as Discord would send it now; None if the person or the bot has left."""
    if asked["guild"] is None:
        return await _of_user(client, unfinished, asked)
    try:
        member = await client.http.get_member(asked["guild"], asked["user"])
    except (discord.NotFound, discord.Forbidden):
        return None
    guild = str(asked["guild"])
    return _event(client, unfinished, asked) | {
        "guild_id": guild,
        "guild": {"id": guild, "features": [], "locale": "en-US"},
        "guild_locale": "en-US",
        "member": member,
        "channel": await _channel(client, asked),
    }


async def _of_user(client: discord.Client, unfinished: OpenRequest, asked: dict[str, Any]) -> Any:  # noqa: ANN401  what Discord sends
    """Return the event as if it came from direct messages."""
    user = await client.http.get_user(asked["user"])
    channel = {"id": str(asked["channel"] or 0), "type": discord.ChannelType.private.value}
    return _event(client, unfinished, asked) | {"user": user, "channel": channel}


async def _channel(client: discord.Client, asked: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return Discord's data of a channel; only the id of one that is cached or deleted."""
    number = asked["channel"] or 0  # of a kind unknown to discord.py
    if number and client.get_channel(number) is None:
        with suppress(discord.NotFound, discord.Forbidden):
            return await client.http.get_channel(number)
    return {"id": str(number)}


def _event(
    client: discord.Client, unfinished: OpenRequest, asked: dict[str, Any]
) -> dict[str, Any]:
    return {
        "id": unfinished.id.removeprefix(f"{DOOR}:"),
        "application_id": str(client.application_id),
        "type": asked["type"],
        "data": asked["data"],
        "token": unfinished.token or "",
        "version": 1,
        "app_permissions": str(asked["app_permissions"]),
        "attachment_size_limit": asked["attachment_size_limit"],
    }
