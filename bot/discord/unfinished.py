"""Resumes interactions that a process of this front end claimed but did not finish."""

import asyncio
import json
import secrets
from contextlib import suppress
from datetime import timedelta
from typing import Any

import discord
import structlog

from bot.discord.context import FRONT_END, DiscordContext, keys_of_request
from bot.discord.interaction_claims import RESUMED, ResumedInteraction
from bot.discord.responses import MARK, InteractionReply, is_temporary
from bot.domain.errors import StoreError, UserError
from bot.domain.records import REQUEST_TTL, OpenRequest
from bot.domain.submission import IdempotencyKey

POLL_S = 1.0
"""Seconds between two polls for interactions that no process holds."""
DELETE_TOKENS_EVERY = 60
"""Polls between two deletions of expired tokens."""
EXPIRED_FOR = timedelta(seconds=5)
"""How long after the end of its lease an interaction is taken over: its holder may be slow."""
MAX_ATTEMPTS = 3
GIVEN_UP = (
    MARK + " Your command failed: {why}. See what `/leaderboard show-personal` lists, then run it "
    "again."
)
_log = structlog.get_logger(__name__)


async def run_resumption(client: discord.Client, context: DiscordContext) -> None:
    """Resume interactions until cancelled."""
    await client.wait_until_ready()
    polls = 0
    while True:
        try:
            if polls % DELETE_TOKENS_EVERY == 0:
                await context.store.interactions.delete_finished()
            await resume_unfinished(client, context)
        except StoreError as error:
            _log.warning("the store is unavailable", action="interactions_wait", error=str(error))
        except Exception as error:  # noqa: BLE001  a bug must not end the polling
            _log.error("bug while resuming interactions", action="incident", exc_info=error)
        polls += 1
        await asyncio.sleep(POLL_S)


async def resume_unfinished(client: discord.Client, context: DiscordContext) -> int:
    """Claim unheld interactions and dispatch them again; return how many."""
    owner, interactions = secrets.token_hex(8), context.store.interactions
    claimed = await interactions.claim_unfinished(FRONT_END, owner, context.lease, EXPIRED_FOR)
    for each in claimed:
        if not await _try_to_resume(client, context, each, owner):
            break  # the others are claimed again after their lease
    return len(claimed)


async def _try_to_resume(
    client: discord.Client, context: DiscordContext, unfinished: OpenRequest, owner: str
) -> bool:
    """Dispatch an interaction again; return False if Discord is unavailable."""
    _log.info("an interaction is resumed", action="interaction_again", id=unfinished.id)
    try:
        await _resume(client, context, unfinished, owner)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001  a bug with one must not end the others
        token_refused = isinstance(error, discord.HTTPException) and error.status == 401
        if is_temporary(error) or token_refused or client.is_closed():
            _log.warning("not resumed", action="interactions_wait", error=repr(error))
            return False
        _log.error("bug in a resumed command", action="incident", id=unfinished.id, exc_info=error)
        await context.store.interactions.finish(unfinished.id, owner)
    return True


async def _resume(
    client: discord.Client, context: DiscordContext, unfinished: OpenRequest, owner: str
) -> None:
    request = json.loads(unfinished.request)
    why = None
    payload = await _event_now(client, unfinished, request)
    if payload is None:
        payload = await _direct_event(client, unfinished, request)
        why = "I can no longer reach the server"
    elif unfinished.tries >= MAX_ATTEMPTS:
        why = f"it was started {MAX_ATTEMPTS} times, and the bot stopped each time"
    elif context.clock.now() - unfinished.at > REQUEST_TTL:
        why = "it is more than a day old"
    state: Any = client._connection  # noqa: SLF001  no public way to dispatch again
    outcome = request.get("outcome")  # of a process that ended before it could say it
    if outcome is None and why is not None:
        if await _has_submitted(context, request, unfinished.id):  # its display shows that
            await context.store.interactions.finish(unfinished.id, owner, keep_token=True)
            return
        _log.warning("given up", action="interaction_given_up", id=unfinished.id, why=why)
        outcome = request["storable"] = GIVEN_UP.format(why=why)
    if outcome is not None:
        asked = discord.Interaction[Any](data=payload, state=state)
        answer = InteractionReply(asked, request.get("is_filled", False), tells_earlier=True)
        answer.storable = request.get("storable", "")
        await answer.say(outcome)
        await context.store.interactions.finish(
            unfinished.id, owner, told=answer.has_told, untold=answer.unsent
        )
        return
    if not await context.store.interactions.begin(unfinished.id, owner, context.lease):
        return
    reset = RESUMED.set(ResumedInteraction(unfinished.id, owner))
    try:
        state.parse_interaction_create(payload)  # the command's task inherits `RESUMED`
    finally:
        RESUMED.reset(reset)


async def _has_submitted(context: DiscordContext, request: dict[str, Any], key: str) -> bool:
    """Return whether an earlier attempt stored a submission."""
    person = await context.store.people.find(f"{FRONT_END}:{request['user']}")
    if person is None:
        return False
    for each in keys_of_request(key, request["data"] or {}):
        try:
            if await context.store.submissions.first(person.id, IdempotencyKey(each, "")):
                return True
        except UserError:  # the key is used, with a digest that only the attempt knew
            return True
    return False


async def _event_now(
    client: discord.Client, unfinished: OpenRequest, request: dict[str, Any]
) -> Any | None:  # noqa: ANN401  what Discord sends
    """Return the event as Discord would send it now; None if the person or the bot has left."""
    if request["guild"] is None:
        return await _direct_event(client, unfinished, request)
    try:
        member = await client.http.get_member(request["guild"], request["user"])
    except (discord.NotFound, discord.Forbidden):
        return None
    guild = str(request["guild"])
    return _event(client, unfinished, request) | {
        "guild_id": guild,
        "guild": {"id": guild, "features": [], "locale": "en-US"},
        "guild_locale": "en-US",
        "member": member,
        "channel": await _channel(client, request),
    }


async def _direct_event(
    client: discord.Client, unfinished: OpenRequest, request: dict[str, Any]
) -> Any:  # noqa: ANN401  what Discord sends
    """Return the event as Discord would send it for direct messages."""
    user = await client.http.get_user(request["user"])
    channel = {"id": str(request["channel"] or 0), "type": discord.ChannelType.private.value}
    return _event(client, unfinished, request) | {"user": user, "channel": channel}


async def _channel(client: discord.Client, request: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return Discord's data of a channel; only its id if it is cached or deleted."""
    number = request["channel"] or 0  # None for a kind of channel that discord.py does not know
    if number and client.get_channel(number) is None:
        with suppress(discord.NotFound, discord.Forbidden):
            return await client.http.get_channel(number)
    return {"id": str(number)}


def _event(
    client: discord.Client, unfinished: OpenRequest, request: dict[str, Any]
) -> dict[str, Any]:
    return {
        "id": unfinished.id.removeprefix(f"{FRONT_END}:"),
        "application_id": str(client.application_id),
        "type": request["type"],
        "data": request["data"],
        "token": unfinished.token or "",
        "version": 1,
        "app_permissions": str(request["app_permissions"]),
        "attachment_size_limit": request["attachment_size_limit"],
        **_clicked_message(client, request),
    }


def _clicked_message(client: discord.Client, request: dict[str, Any]) -> dict[str, Any]:
    """Return the clicked message, with what discord.py needs to find the handler of its button."""
    clicked, user = request.get("message"), client.user
    if clicked is None or user is None:
        return {}
    author = {"id": str(user.id), "username": user.name, "discriminator": "0", "avatar": None}
    channel = str(request["channel"] or 0)
    known = {"author": author, "channel_id": channel, "type": 0, "content": ""}
    return {"message": clicked | known}
