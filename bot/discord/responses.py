"""Answers an interaction: acknowledges it within three seconds, then sends the result."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import discord
import structlog
from structlog.contextvars import bound_contextvars

from bot.discord.draw import MessageDraft, illustrated, sheets
from bot.discord.errors import SupersededError, gives_way, words_for
from bot.reports.blocks import Attachment, Report

_log = structlog.get_logger(__name__)
_ALT_TEXT = 1024
"""The most characters of a picture's alternative text."""


@dataclass(slots=True)
class InteractionReply:
    """An acknowledged interaction; messages appear below the command."""

    interaction: discord.Interaction[Any]

    async def say(self, text: str, view: discord.ui.View | None = None) -> None:
        """Send one short message, already escaped."""
        await self._send(MessageDraft(text), view)

    async def show(self, report: Report, view: discord.ui.View | None = None) -> None:
        """Send a report in as many messages as needed; the view comes with the last."""
        await self.show_all(sheets(await illustrated(report)), view)

    async def renew(self, report: Report, view: discord.ui.View, *, pictures: bool = False) -> None:
        """Replace the report in the clicked message; its files stay unless `pictures`."""
        sheet, *more = sheets(await illustrated(report))
        files = as_files(sheet.files) if pictures else discord.utils.MISSING
        await self.interaction.edit_original_response(
            content=sheet.content, view=view, attachments=files
        )
        for each in more:
            await self._send(each, None)

    async def show_all(
        self, found: Sequence[MessageDraft], view: discord.ui.View | None = None
    ) -> None:
        """Send messages in order; the view comes with the last."""
        *first, last = found
        for sheet in first:
            await self._send(sheet, None)
        await self._send(last, view)

    async def _send(self, sheet: MessageDraft, view: discord.ui.View | None) -> None:
        await self.interaction.followup.send(
            sheet.content,
            files=as_files(sheet.files),
            view=discord.utils.MISSING if view is None else view,
            ephemeral=True,
        )


def as_files(attachments: Sequence[Attachment]) -> list[discord.File]:
    """Return the attachments as uploads, each readable once."""
    return [
        discord.File(BytesIO(each.data), each.name, description=each.about[:_ALT_TEXT] or None)
        for each in attachments
    ]


@asynccontextmanager
async def straight(interaction: discord.Interaction[Any]) -> AsyncIterator[None]:
    """Handle errors around a first response that is itself the acknowledgement, such as a form.

    It must come within three seconds.
    """
    try:
        yield
    except discord.HTTPException as error:
        if gives_way(error):
            raise SupersededError from error
        raise
    except Exception as error:  # noqa: BLE001 - the outermost frame for this interaction
        words = words_for(error)
        if words is not None:
            await interaction.response.send_message(words[:2000], ephemeral=True)


@asynccontextmanager
async def replying(interaction: discord.Interaction[Any]) -> AsyncIterator[InteractionReply]:
    """Acknowledge at once, visible only to this person; errors are shown there.

    When another process of the bot has answered, nothing is done.
    """
    async with _acknowledged(interaction, thinking=True) as answer:
        yield answer


@asynccontextmanager
async def renewing(interaction: discord.Interaction[Any]) -> AsyncIterator[InteractionReply]:
    """Do the same for a click whose reply replaces the clicked message."""
    async with _acknowledged(interaction, thinking=False) as answer:
        yield answer


@asynccontextmanager
async def _acknowledged(
    interaction: discord.Interaction[Any], *, thinking: bool
) -> AsyncIterator[InteractionReply]:
    try:
        await interaction.response.defer(ephemeral=True, thinking=thinking)
    except discord.HTTPException as error:
        if gives_way(error):
            raise SupersededError from error
        raise
    answer = InteractionReply(interaction)
    with bound_contextvars(request=f"discord-{interaction.id}"):
        try:
            yield answer
        except Exception as error:  # noqa: BLE001 - the outermost frame for this interaction
            await _tell(answer, error)


async def _tell(answer: InteractionReply, error: Exception) -> None:
    words = words_for(error)
    if words is None:
        return
    try:
        await answer.say(words[:2000])
    except (discord.HTTPException, OSError) as silence:
        _log.warning("nobody could be told", action="untold", words=words, error=repr(silence))
