"""Clicks and forms that nobody answers: of a question that is answered, too old, or of before."""

import asyncio
from typing import Any

import aiohttp
import discord
import structlog

from bot.discord.errors import gives_way

_log = structlog.get_logger(__name__)

GRACE_S = 2.0
"""After which nobody answers, not even another copy of the bot; a person's client waits 3 s."""
_ANSWERED = frozenset({discord.InteractionType.component, discord.InteractionType.modal_submit})
WORDS = (
    "This is not open any more: it was answered, it has waited for 14 minutes, or the bot was "
    "restarted since. Please give the command again."
)


async def answer_for_nobody(interaction: discord.Interaction[Any]) -> None:
    """Say what to do where Discord would say no more than "This interaction failed"."""
    if interaction.type not in _ANSWERED:
        return
    await asyncio.sleep(GRACE_S)
    if interaction.response.is_done() or interaction.client.is_closed():
        return
    try:
        await interaction.response.send_message(WORDS, ephemeral=True)
    except discord.InteractionResponded:
        return  # while this was sent
    except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
        if not (isinstance(error, discord.HTTPException) and gives_way(error)):
            _log.warning("a click could not be answered", action="untold", error=repr(error))
