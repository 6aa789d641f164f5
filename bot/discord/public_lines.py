"""Posts a line into a board's public thread when a ranked run changes something."""

from dataclasses import dataclass

import discord
import structlog

from bot.discord import channels, draw
from bot.discord.board_threads import GuildThreads, ThreadBusyError
from bot.discord.buttons import details_button
from bot.discord.displays import DisplayedSubmission, DisplayProgress, DisplayWriter, OnceMessage
from bot.discord.responses import is_temporary
from bot.discord.roles import channel_credentials
from bot.domain.status import SubmissionStatus
from bot.services.standings import placements

_log = structlog.get_logger(__name__)

BLOCKED_S = 20.0
"""Seconds until the permissions are checked again, which needs no request."""
_REFUSED_S = 60.0
_MOST_REFUSED_S = 3600.0
"""The first and the longest wait after Discord refused a line, for whatever reason."""
_BUSY_S = 1.0
"""Seconds until the next attempt while another process creates the thread."""
_UNKNOWN_CHANNEL = 10003


@dataclass(frozen=True, slots=True)
class PublicLines:
    """Posts each line once, silently, as soon as the bot may."""

    writer: DisplayWriter
    threads: GuildThreads

    def is_blocked(self, shown: DisplayedSubmission) -> bool:
        """Return whether the bot is known to have no permission to write."""
        channel = self.writer.client.get_channel(shown.state.channel)
        if not isinstance(channel, discord.TextChannel):
            return False
        may = channels.bot_permissions(channel)
        return not may.view_channel or not (may.send_messages or may.send_messages_in_threads)

    async def advance(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> DisplayProgress:
        """Post the line if something changed, and finish; or return when to try again."""
        try:
            text = await self._line(shown, status)
            if text is not None:
                where = await self._destination(shown, status)
                if where is None:
                    return DisplayProgress(again_s=BLOCKED_S, waits=True, requested=False)
                view, nonce = details_button(shown.submission), f"{shown.submission}-place"
                message = OnceMessage.of_text(text, nonce, view, silent=True)
                line = await self.writer.send_once(shown, where, message)
                await self.writer.record(shown, owner, announced=line.id)
        except ThreadBusyError:
            return DisplayProgress(again_s=_BUSY_S, requested=False)
        except discord.HTTPException as error:
            if is_temporary(error):
                raise
            return await self._refused(shown, status, error)
        return await self.writer.finish(shown, owner)

    async def _line(self, shown: DisplayedSubmission, status: SubmissionStatus) -> str | None:
        """Return the line; None if nothing changed, or not everyone there may know of it."""
        state, client = shown.state, self.writer.client
        if state.announced is not None or not state.in_guild:
            return None
        if not status.submission.is_ranked:
            return None
        found = await placements(self.writer.context.store, shown.submission)
        changed = [each for each in found if each.is_best]  # a first entry, or a better time
        if not changed or not await self._exists(state.channel):
            return None
        if not status.board.access.admits(channel_credentials(client, state.channel)):
            return None
        return draw.public_line(status, state.user, changed)

    async def _exists(self, channel: int) -> bool:
        """Return whether the channel exists, even if the bot cannot see it."""
        if self.writer.client.get_channel(channel) is not None:
            return True
        try:
            await self.writer.client.fetch_channel(channel)
        except discord.NotFound:
            return False
        return True

    async def _destination(
        self, shown: DisplayedSubmission, status: SubmissionStatus
    ) -> int | None:
        """Return the board's thread, or the channel if it has none; None without permission."""
        channel = await channels.channel_of(self.writer.client, shown.state.channel)
        if channel is None:
            return None
        may = channels.bot_permissions(channel)
        if may.send_messages_in_threads and may.create_public_threads:
            thread = await self.threads.public(channel, status.board, shown.lost)
            await self.threads.unarchive(channel.guild, thread)
            return thread
        return channel.id if may.send_messages else None

    async def _refused(
        self, shown: DisplayedSubmission, status: SubmissionStatus, error: discord.HTTPException
    ) -> DisplayProgress:
        """Try again later: a lost thread is replaced, and permissions may return."""
        _log.info("a line is refused", action="line_lost", id=shown.submission, error=repr(error))
        channel = await channels.channel_of(self.writer.client, shown.state.channel)
        if error.code == _UNKNOWN_CHANNEL and channel is not None and not shown.lost:
            shown.lost = await self.threads.public(channel, status.board, 0)
            return DisplayProgress(again_s=0.0)
        wait_s = min(_MOST_REFUSED_S, _REFUSED_S * 2.0 ** min(shown.refusals, 10))
        shown.refusals += 1
        return DisplayProgress(again_s=wait_s, waits=True)
