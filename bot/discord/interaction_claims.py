"""Handles each interaction once: claims it in the store, then acknowledges it within 3 seconds.

The claim is a lease. If Discord reports an earlier acknowledgement, the holder handles the
interaction all the same: that acknowledgement may be its own, if Discord's reply to it was lost.
`unfinished.py` resumes what was claimed but not finished.
"""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import aiohttp
import discord
import structlog
from structlog.contextvars import bound_contextvars

from bot.discord import responses
from bot.discord.channels import save_conversation
from bot.discord.context import (
    FRONT_END,
    DiscordContext,
    Interaction,
    context_of,
    interaction_key,
    request_json,
)
from bot.discord.responses import InteractionReply
from bot.domain.errors import StoreError
from bot.domain.records import InteractionRequest
from bot.services.audit import recorded_once

DATABASE_WAIT_S = 1.0
"""How long the acknowledgement waits for the database."""
FIRST_LEASE = timedelta(seconds=1)
"""The lease until the acknowledgement; after it, a process that lost the claim checks again."""
ACKNOWLEDGE_S = 3.0
"""How long Discord accepts an acknowledgement."""
DIRECT_WAIT_S = 2.5
"""How long a response that is itself the acknowledgement may wait for the database."""
LONGEST_LEASES = 90
"""The most renewals of a lease: a handler is stopped after the 15 minutes of its token."""
DATABASE_RETRY_S = 30.0
"""How long an unavailable database is retried."""
RETRY_INTERVAL_S = 0.2
LASTING = "podium:"
"""The start of the ids of buttons that every process of the bot handles."""
DATABASE_UNAVAILABLE = (
    f"{responses.MARK} The database is unavailable, so nothing is stored yet. I will keep trying "
    "for half a minute. If this message has not changed within a minute, run the command again."
)
WILL_RUN_LATER = (
    responses.MARK + " {what} is temporarily unavailable. Your request is saved and will run when "
    "it is available again; you do not need to run the command again. This message is updated if "
    "that takes less than 15 minutes. Later, `/leaderboard show-personal` lists what you submitted."
)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ResumedInteraction:
    """An unfinished interaction that this process has claimed and dispatches again."""

    id: str
    owner: str


RESUMED: ContextVar[ResumedInteraction | None] = ContextVar("resumed", default=None)
"""Set while `unfinished.py` dispatches an interaction; the task of its command inherits it."""


def replying(interaction: Interaction) -> AbstractAsyncContextManager[InteractionReply]:
    """Claim and acknowledge, then send replies and errors that only this person sees.

    SupersededError when another process holds the claim.
    """
    return _claimed(InteractionReply(interaction))


def replacing(interaction: Interaction) -> AbstractAsyncContextManager[InteractionReply]:
    """Claim and acknowledge a click; the clicked message may then be replaced."""
    return _claimed(InteractionReply(interaction, is_filled=True))


@asynccontextmanager
async def _claimed(answer: InteractionReply) -> AsyncIterator[InteractionReply]:
    """Hold a lease while the block runs; show the block's errors."""
    interaction = answer.interaction
    with bound_contextvars(request=f"discord-{interaction.id}"):
        claim = InteractionClaim.of(interaction, request_json(interaction))
        answer.save, answer.tells_earlier = claim.save_outcome, True
        await claim.begin(answer)
        await save_conversation(interaction)
        done = False
        try:
            async with claim.renewed():
                try:
                    yield answer
                    done = True
                except Exception as error:  # noqa: BLE001 - the interaction's outermost frame
                    # A bot that is shutting down cannot answer; the next process does.
                    later = claim.has_outcome or _is_repeatable(interaction)
                    done = not interaction.client.is_closed() and await _show_error(
                        answer, error, later=later, is_resumed=claim.is_resumed
                    )
        except TimeoutError:
            _log.warning("a lease was lost", action="interaction_late")
            return
        pause = timedelta() if interaction.client.is_closed() else claim.context.lease
        await claim.end(done=done, pause=pause, answer=answer)


@asynccontextmanager
async def direct_response(interaction: Interaction) -> AsyncIterator[None]:
    """Claim, and handle errors around a first response that is itself the acknowledgement.

    Such a response, a form for example, must come within three seconds, so it is never resumed.
    """
    claim = InteractionClaim.of(interaction, request_json(interaction))
    try:
        await claim.begin_directly()
        yield
    except Exception as error:
        if responses.is_superseded(error):
            raise responses.SupersededError from error
        message = responses.error_message(error)
        if message is None or isinstance(error, discord.HTTPException):
            raise
        await interaction.response.send_message(message[:2000], ephemeral=True)
    finally:
        await claim.end(done=True, pause=timedelta(), answer=InteractionReply(interaction))


GRACE_S = 1.0
"""Seconds that the process which opened a form has to handle it before any process answers."""
_LEAST_GRACE_S = 0.1
"""The least wait for this process's own handler, even if the form arrived late."""
EXPIRED = "This menu has expired. Please run the command again."
_HANDLED = "handled"
"""The key in `Interaction.extras` that marks an interaction which this process handles."""


async def answer_unhandled(interaction: Interaction, known: Iterable[re.Pattern[str]]) -> None:
    """Answer a click or form without a handler, instead of Discord's "This interaction failed".

    Every process handles the buttons in `known`, but only the one that opened a form handles it.
    """
    if interaction.type is discord.InteractionType.component:
        custom_id = str(dict(interaction.data or {}).get("custom_id", ""))
        if any(each.fullmatch(custom_id) for each in known):
            return
    elif interaction.type is not discord.InteractionType.modal_submit:
        return
    else:
        age_s = (context_of(interaction).clock.now() - interaction.created_at).total_seconds()
        await asyncio.sleep(min(max(GRACE_S - age_s, _LEAST_GRACE_S), GRACE_S))
    if interaction.extras.get(_HANDLED) or interaction.client.is_closed():
        return
    words = EXPIRED if RESUMED.get() is None else f"{EXPIRED} {responses.MAY_BE_DONE}"
    with suppress(responses.SupersededError):
        async with replying(interaction) as answer:
            await answer.say(f"{responses.MARK} {words}")


@dataclass(slots=True)
class InteractionClaim:
    """An interaction, and the unique name under which it is held."""

    context: DiscordContext
    request: InteractionRequest
    owner: str
    is_resumed: bool = False
    """Whether `unfinished.py` has already claimed it."""
    has_outcome: bool = False
    """Whether its outcome is stored; then any process can send it."""

    @classmethod
    def of(cls, interaction: Interaction, request_text: str) -> "InteractionClaim":
        """Return the claim of a resumed interaction, or a new one."""
        key, resumed = interaction_key(interaction), RESUMED.get()
        request = InteractionRequest(
            key, FRONT_END, request_text, interaction.token, interaction.created_at
        )
        interaction.extras[_HANDLED] = True
        if resumed is not None and resumed.id == key:
            return cls(context_of(interaction), request, resumed.owner, is_resumed=True)
        return cls(context_of(interaction), request, secrets.token_hex(8))

    async def begin(self, answer: InteractionReply) -> None:
        """Claim and acknowledge; SupersededError when another process did, or it is too late."""
        try:
            if not self.is_resumed:
                await self._begin_new(answer)
            elif answer.interaction.token:
                await _acknowledge(answer)
            is_claimed = await self._renew()
        except StoreError as error:
            _log.warning("the store is unavailable", action="interaction_waits", error=str(error))
            raise responses.SupersededError from error
        if not is_claimed:
            raise responses.SupersededError

    async def _begin_new(self, answer: InteractionReply) -> None:
        claim = asyncio.create_task(self._claim(), name="claim")
        try:
            in_time, _ = await asyncio.wait({claim}, timeout=DATABASE_WAIT_S)
            if not in_time and await _acknowledge(answer):
                # `answer` stays unfilled: its first message will replace this one.
                notice = InteractionReply(answer.interaction, answer.is_filled)
                await responses.try_to_say(notice, DATABASE_UNAVAILABLE)
            is_claimed = await claim
        finally:
            claim.cancel()
        if not is_claimed and in_time:  # the holder may have ended before acknowledging it
            await asyncio.sleep(FIRST_LEASE.total_seconds())
            is_claimed = await self._claim()
        if not is_claimed:
            raise responses.SupersededError
        if in_time:
            await _acknowledge(answer)

    async def _claim(self) -> bool:
        """Claim it as soon as the database answers; return whether that succeeded."""
        interactions = self.context.store.interactions
        end = asyncio.get_running_loop().time() + DATABASE_RETRY_S
        while True:
            try:
                return await interactions.claim(self.request, self.owner, FIRST_LEASE)
            except StoreError:
                if asyncio.get_running_loop().time() > end:
                    raise
                await asyncio.sleep(RETRY_INTERVAL_S)

    async def _renew(self) -> bool:
        interactions = self.context.store.interactions
        return await interactions.renew(self.request.id, self.owner, self.context.lease)

    async def begin_directly(self) -> None:
        """Claim it without acknowledging it; SupersededError when another process has it."""
        async with asyncio.timeout(DIRECT_WAIT_S):
            is_claimed = await (self._renew() if self.is_resumed else self._claim())
        if not is_claimed:
            raise responses.SupersededError

    @asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        """Renew the lease while the block runs; TimeoutError in the block when it is lost."""
        loop, lease_s = asyncio.get_running_loop(), self.context.lease.total_seconds()
        ended: asyncio.Future[None] = loop.create_future()

        async def renew() -> None:
            for _ in range(LONGEST_LEASES):
                await asyncio.wait({ended}, timeout=lease_s / 3)
                with suppress(StoreError):
                    if ended.done() or not await self._renew() or limit.expired():
                        return
                    limit.reschedule(loop.time() + lease_s)

        async with asyncio.timeout(lease_s) as limit:
            renewing = asyncio.create_task(renew(), name="lease")
            try:
                with recorded_once(self.request.id):
                    yield
            finally:
                ended.set_result(None)
                await renewing

    async def save_outcome(self, answer: InteractionReply, text: str) -> None:
        """Store the text that will be sent; SupersededError when another process has taken over."""
        outcome = {"outcome": text, "is_filled": answer.is_filled, "storable": answer.storable}
        stored = json.loads(self.request.request) | outcome
        interactions = self.context.store.interactions
        if not await interactions.save_request(self.request.id, self.owner, json.dumps(stored)):
            raise responses.SupersededError
        self.has_outcome = True

    async def end(self, *, done: bool, pause: timedelta, answer: InteractionReply) -> None:
        """Delete a finished request; release an unfinished one, to be resumed after `pause`.

        If the store is unavailable, the request is resumed after its lease.
        """
        interactions, key = self.context.store.interactions, self.request.id
        kept, told, unsent = answer.is_followed, answer.has_told, answer.unsent
        try:
            if done:
                await interactions.finish(
                    key, self.owner, keep_token=kept, told=told, untold=unsent
                )
            else:
                await interactions.release(key, self.owner, pause)
        except StoreError as error:
            _log.warning("the store is unavailable", action="interaction_waits", error=str(error))


async def _acknowledge(answer: InteractionReply) -> bool:
    """Acknowledge; return whether Discord accepted that. The claim's holder continues anyway."""
    try:
        async with asyncio.timeout(ACKNOWLEDGE_S):
            await _defer(answer)
    except (discord.HTTPException, aiohttp.ClientError, OSError, RuntimeError) as error:
        # A RuntimeError means that the client is shutting down.
        if not responses.is_superseded(error):
            _log.warning("not acknowledged", action="unacknowledged", error=repr(error))
        return False
    return True


async def _defer(answer: InteractionReply) -> None:
    """Acknowledge; retry after a connection error, which discord.py does not."""
    response, is_new = answer.interaction.response, not answer.is_filled
    while True:
        try:
            await response.defer(ephemeral=True, thinking=is_new)
        except (aiohttp.ClientError, ConnectionError):
            await asyncio.sleep(RETRY_INTERVAL_S)
        else:
            return


def _is_repeatable(interaction: Interaction) -> bool:
    """Return whether any process can handle it: a command, or a button that survives restarts."""
    data: Mapping[str, Any] = interaction.data or {}
    is_command = interaction.type is discord.InteractionType.application_command
    return is_command or str(data.get("custom_id", "")).startswith(LASTING)


async def _show_error(
    answer: InteractionReply, error: Exception, *, later: bool, is_resumed: bool
) -> bool:
    """Show the error; return False when the request is to be resumed `later`, if it can be."""
    original = responses.root_cause(error)
    if later and (isinstance(original, StoreError) or responses.is_temporary(original)):
        what = "The database" if isinstance(original, StoreError) else "Discord"
        _log.warning("done later", action="interaction_waits", error=repr(original))
        await responses.try_to_say(answer, WILL_RUN_LATER.format(what=what))
        return False
    message = responses.error_message(error, is_resumed=is_resumed)
    return message is None or await responses.try_to_say(answer, message)
