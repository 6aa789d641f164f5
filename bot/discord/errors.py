"""The only error handler, and the answer to a click on an expired question."""

import asyncio
import secrets
from typing import Any

import aiohttp
import discord
import structlog
from discord import app_commands

from bot.discord.escaping import plain, timed
from bot.domain.errors import StoreError, UserError
from runners.contract.runner import RunnerError

_log = structlog.get_logger(__name__)

ALREADY_ANSWERED = 40060
"""Another process of this application has answered the interaction."""
UNKNOWN_INTERACTION = 10062
"""More than three seconds have passed, so the interaction can no longer be answered."""


class SupersededError(Exception):
    """Another process answers this interaction, or none can any more: stay silent."""


def gives_way(error: discord.HTTPException) -> bool:
    """Return whether another process answers the interaction, or none can any more."""
    return error.code in {ALREADY_ANSWERED, UNKNOWN_INTERACTION}


def words_for(error: BaseException) -> str | None:
    """Return the message for the person, ready to show; None when none can be shown."""
    leaf = cause(error)
    match leaf:
        case SupersededError():
            return None
        case UserError(code="wrong-channel", message=message):
            return message  # our own text, with clickable channels
        case UserError(message=message, moments=moments):
            return timed(message, moments)
        case app_commands.CheckFailure():
            return plain(str(leaf))
        case _:
            return _ours(leaf)


def _ours(error: BaseException) -> str:
    """Return the message for an internal error; the log has details under the incident's id."""
    incident = secrets.token_hex(4)
    _log.error("a command failed", action="incident", incident=incident, exc_info=error)
    if isinstance(error, StoreError | RunnerError):
        return f"Internal error: the service is unavailable. Try again soon (incident {incident})."
    if isinstance(error, discord.HTTPException) or is_passing(error):
        return f"Discord rejected part of the answer. Nothing is lost (incident {incident})."
    return f"This is a bug in Podium. Please report incident {incident}."


def is_passing(error: BaseException) -> bool:
    """Return whether Discord is unavailable or overloaded, so that a retry may succeed."""
    if isinstance(error, discord.HTTPException):
        return error.status >= 500 or error.status == 429
    return isinstance(error, discord.RateLimited | aiohttp.ClientError | TimeoutError | OSError)


def cause(error: BaseException) -> BaseException:
    """Return the original error, unwrapped from discord.py's errors and from task groups."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        elif isinstance(error, app_commands.CommandInvokeError):
            error = error.original
        else:
            return error


GRACE_S = 2.0
"""How long to wait for another process of the bot to answer; a client waits 3 s."""
_ANSWERED = frozenset({discord.InteractionType.component, discord.InteractionType.modal_submit})
WORDS = "This menu has expired. Please run the command again."


async def answer_for_nobody(interaction: discord.Interaction[Any]) -> None:
    """Answer a click that no process handles, instead of Discord's "This interaction failed"."""
    if interaction.type not in _ANSWERED:
        return
    await asyncio.sleep(GRACE_S)
    if interaction.response.is_done() or interaction.client.is_closed():
        return
    try:
        await interaction.response.send_message(WORDS, ephemeral=True)
    except discord.InteractionResponded:
        return  # answered meanwhile
    except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
        if not (isinstance(error, discord.HTTPException) and gives_way(error)):
            _log.warning("a click could not be answered", action="untold", error=repr(error))
