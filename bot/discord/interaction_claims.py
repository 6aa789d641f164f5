"""Executes each interaction once: claims it in the store, then acknowledges it.

The claim is a lease. Its holder executes the request even if Discord reports an earlier
acknowledgement, since that may have been the holder's own, whose reply was lost. `unfinished.py`
resumes what was claimed but not finished.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import aiohttp
import discord
import structlog
from structlog.contextvars import bound_contextvars

from bot.discord import responses
from bot.discord.context import DOOR, DiscordContext, Interaction, context_of
from bot.domain.errors import StoreError
from bot.domain.records import InteractionRequest

DATABASE_S = 1.0
"""How long the acknowledgement waits for the database."""
CLAIMED = timedelta(seconds=1)
"""The lease until the acknowledgement; after it, a process that lost the claim checks again."""
ACKNOWLEDGED_S = 3.0
"""How long Discord accepts an acknowledgement."""
PATIENCE_S = 30.0
"""How long an unavailable database is retried."""
AGAIN_S = 0.2
AWAY = (
    "The database is unavailable, so nothing is stored yet. I will keep trying for half a "
    "minute. If this message has not changed within a minute, run the command again."
)
LATER = (
    "{what} is temporarily unavailable. Your request is saved and will run when it is "
    "available again. This message will then be updated; you do not need to run the "
    "command again."
)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """An unfinished interaction that this process has claimed and dispatches again."""

    id: str
    owner: str
    answers: Mapping[str, Any] = field(default_factory=dict)


TAKEN: ContextVar[Taken | None] = ContextVar("taken", default=None)


def name_of(interaction: Interaction) -> str:
    """Return the interaction's id in the store, also the idempotency key of what it creates."""
    return f"{DOOR}:{interaction.id}"


def request_of(interaction: Interaction, answers: Mapping[str, Any]) -> str:
    """Return the request without its token, so that it can be dispatched again.

    Person and channel are looked up again then, since rights may have changed.
    """
    return json.dumps({
        "type": interaction.type.value,
        "data": interaction.data,
        "guild": interaction.guild_id,
        "channel": interaction.channel_id,
        "user": interaction.user.id,
        "app_permissions": interaction.app_permissions.value,
        "attachment_size_limit": interaction.filesize_limit,
        "answers": dict(answers),
    })  # fmt: skip


def answered_before(interaction: Interaction) -> Mapping[str, Any]:
    """Return the person's answers to questions in the interrupted run, when it is resumed."""
    taken = TAKEN.get()
    return taken.answers if taken is not None and taken.id == name_of(interaction) else {}


@asynccontextmanager
async def keeping(
    interaction: Interaction,
    command: Interaction | None = None,
    **answers: Sequence[str],
) -> AsyncIterator[responses.InteractionReply]:
    """Claim, acknowledge and hold a lease while the block runs; errors are shown there.

    A click that answers a question gives the command that asked and its answers: if this process
    ends, that command is run again with them. SupersededError when another process does it.
    """
    with bound_contextvars(request=f"discord-{interaction.id}"):
        claim = InteractionClaim.of(interaction, request_of(command or interaction, answers))
        answer = responses.LastingAnswer(interaction)
        await claim.begin(answer)
        done = False
        try:
            async with asyncio.timeout(claim.door.lease.total_seconds()):
                try:
                    yield answer
                    done = True
                except Exception as error:  # noqa: BLE001 - the interaction's outermost frame
                    # A bot that is shutting down cannot answer; the next process does.
                    done = not interaction.client.is_closed() and await _told(answer, error)
        except TimeoutError:
            _log.warning("a lease was too short", action="interaction_late")
            return
        pause = timedelta() if interaction.client.is_closed() else claim.door.lease
        await claim.end(done=done, pause=pause)


@dataclass(slots=True)
class InteractionClaim:
    """An interaction, and the unique name under which it is held."""

    door: DiscordContext
    asked: InteractionRequest
    owner: str
    is_taken: bool = False
    """Whether it is already claimed, as a resumed one."""

    @classmethod
    def of(cls, interaction: Interaction, request: str) -> "InteractionClaim":
        """Return the claim of a resumed interaction, or a new one."""
        name, taken = name_of(interaction), TAKEN.get()
        asked = InteractionRequest(name, DOOR, request, interaction.token, interaction.created_at)
        if taken is not None and taken.id == name:
            return cls(context_of(interaction), asked, taken.owner, is_taken=True)
        return cls(context_of(interaction), asked, secrets.token_hex(8))

    async def begin(self, answer: responses.InteractionReply) -> None:
        """Claim and acknowledge; SupersededError when another process did, or it is too late."""
        try:
            if not self.is_taken:
                await self._begin_anew(answer)
            elif answer.interaction.token:
                await _acknowledge(answer.interaction)
            mine = await self._keep()
        except StoreError as error:
            _log.warning("the store is away", action="interaction_waits", error=str(error))
            raise responses.SupersededError from error
        if not mine:
            raise responses.SupersededError

    async def _begin_anew(self, answer: responses.InteractionReply) -> None:
        claiming = asyncio.create_task(self._take(), name="claim")
        try:
            in_time, _ = await asyncio.wait({claiming}, timeout=DATABASE_S)
            if not in_time and await _acknowledge(answer.interaction):
                await _say(responses.LastingAnswer(answer.interaction), AWAY)
            mine = await claiming
        finally:
            claiming.cancel()
        if not mine and in_time:  # the holder may have ended before acknowledging it
            await asyncio.sleep(CLAIMED.total_seconds())
            mine = await self._take()
        if not mine:
            raise responses.SupersededError
        if in_time:
            await _acknowledge(answer.interaction)

    async def _take(self) -> bool:
        """Claim it as soon as the database answers; return whether that succeeded."""
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            try:
                return await self.door.store.interactions.claim(self.asked, self.owner, CLAIMED)
            except StoreError:
                if asyncio.get_running_loop().time() > end:
                    raise
                await asyncio.sleep(AGAIN_S)

    async def _keep(self) -> bool:
        held = self.asked.id, self.owner, self.door.lease
        return await self.door.store.interactions.keep(*held)

    async def end(self, *, done: bool, pause: timedelta) -> None:
        """Delete the request, or leave it for later; if the store is unavailable, it is resumed."""
        interactions = self.door.store.interactions
        try:
            if done:
                await interactions.finish(self.asked.id, self.owner)
            else:
                await interactions.leave(self.asked.id, self.owner, pause)
        except StoreError as error:
            _log.warning("the store is away", action="interaction_waits", error=str(error))


async def _acknowledge(interaction: Interaction) -> bool:
    """Return whether Discord confirms this process; the claim's holder continues anyway."""
    try:
        async with asyncio.timeout(ACKNOWLEDGED_S):
            await _defer(interaction)
    except discord.HTTPException as error:
        if not responses.gives_way(error):
            _log.warning("not acknowledged", action="unacknowledged", error=repr(error))
        return False
    except (aiohttp.ClientError, OSError, RuntimeError) as error:  # the last: shutting down
        _log.warning("not acknowledged", action="unacknowledged", error=repr(error))
        return False
    return True


async def _defer(interaction: Interaction) -> None:
    """Acknowledge; retry after a connection error, which discord.py does not."""
    while True:
        try:
            await interaction.response.defer(ephemeral=True, thinking=True)
        except (aiohttp.ClientError, ConnectionError):
            await asyncio.sleep(AGAIN_S)
        else:
            return


async def _told(answer: responses.InteractionReply, error: Exception) -> bool:
    """Show the error; False when the work is done later."""
    leaf = responses.cause(error)
    later = isinstance(leaf, StoreError) or responses.is_passing(leaf)
    if later:
        what = "The database" if isinstance(leaf, StoreError) else "Discord"
        _log.warning("done later", action="interaction_waits", error=repr(leaf))
        words: str | None = LATER.format(what=what)
    else:
        words = responses.words_for(error)
    if words is None:
        return True
    return await _say(answer, words) and not later


async def _say(answer: responses.InteractionReply, words: str) -> bool:
    """Return False when the message should be sent again later."""
    try:
        await answer.say(words[:2000])
    except (discord.DiscordException, aiohttp.ClientError, OSError) as silence:
        _log.warning("nobody could be told", action="untold", words=words, error=repr(silence))
        return not responses.is_passing(silence)
    return True
