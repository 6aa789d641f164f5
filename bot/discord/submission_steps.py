"""Advances one submission's display: the answer to its command, a private thread, a public line.

Every step is recorded as soon as it is done, and each message has a nonce: a process that resumes
neither skips nor repeats a message. Discord remembers a nonce only for minutes. After a failure, or
if another process started the display, the recent messages are therefore read before one is sent.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import discord
import structlog

from bot.discord import channels, draw
from bot.discord.board_threads import GuildThreads, ThreadBusyError
from bot.discord.buttons import buttons_of
from bot.discord.context import DiscordContext
from bot.discord.displays import (
    DisplayedSubmission,
    DisplayProgress,
    DisplayWriter,
    EditRateLimiter,
    OnceMessage,
    Phase,
)
from bot.discord.escaping import MESSAGE_LIMIT
from bot.discord.public_lines import BLOCKED_S, PublicLines
from bot.discord.responses import as_files, is_temporary, webhook_of
from bot.discord.result_notifications import send_confirmation, send_result, view_of
from bot.domain.status import SubmissionStatus
from bot.reports.blocks import Report
from bot.reports.short import short_report
from bot.services.standings import placements
from bot.services.status import profile_files, submission_status

_log = structlog.get_logger(__name__)

_UNKNOWN_MESSAGE = 10008
"""Discord's code when a message was deleted."""
_RETRY_S = 0.5
"""Seconds until the next attempt after a thread was lost."""
_ARCHIVED_S = 2.0
"""Seconds until the next attempt, after old threads were archived to make room."""
_ANSWER_POLL_S = 0.3
"""Seconds between two checks of a command that has not answered yet."""
_ANSWER_WITHIN = timedelta(minutes=2)
"""How long a command may take to answer; after that, the display continues in the thread."""


@dataclass(frozen=True, slots=True)
class ThreadUpdater:
    """Updates the messages that show submissions on Discord."""

    client: discord.Client
    context: DiscordContext
    edits: EditRateLimiter = field(default_factory=EditRateLimiter)

    @property
    def _writer(self) -> DisplayWriter:
        return DisplayWriter(self.client, self.context)

    @property
    def _threads(self) -> GuildThreads:
        return GuildThreads(self.client, self.context)

    async def advance(self, shown: DisplayedSubmission, owner: str) -> DisplayProgress:
        """Draw what has changed; may be repeated. Raises the errors of Discord and the store."""
        lines = PublicLines(self._writer, self._threads)
        if shown.phase is Phase.LINE and lines.is_blocked(shown):
            return DisplayProgress(again_s=BLOCKED_S, waits=True, requested=False)
        status = await submission_status(self.context.store, shown.submission)
        shown.queued = any(each.place is not None for each in status.jobs)
        match shown.phase:
            case Phase.ANSWER:
                return await self._advance_answer(shown, owner, status)
            case Phase.THREAD:
                return await self._advance_private(shown, owner, status)
            case Phase.LINE:
                return await lines.advance(shown, owner, status)

    async def give_up(self, shown: DisplayedSubmission, owner: str) -> None:
        """Skip the step that fails for an unknown reason; the report can be requested."""
        if shown.phase is Phase.ANSWER:
            await self._writer.record(shown, owner, answered=True)
        elif shown.phase is Phase.THREAD:
            await self._writer.record(shown, owner, unseen=True)

    async def _advance_answer(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> DisplayProgress:
        """Show progress or report in the answer to the command, while its token is valid."""
        request = shown.state.answer or ""
        kept = await self.context.store.interactions.answer_of(request)
        asked_at = discord.utils.snowflake_time(int(request.rpartition(":")[2] or 0))
        if not kept.done and self.context.clock.now() - asked_at < _ANSWER_WITHIN:
            return DisplayProgress(again_s=_ANSWER_POLL_S, requested=False)
        self.edits.begin(request)  # so that the first answer can be read
        token = kept.token
        rest: Sequence[draw.MessageDraft] | None = None if token else ()
        if token is not None:
            early_s = self.edits.wait_for(request)
            text = draw.answer_text(status)
            if early_s > 0 and (status.is_final or text != shown.live_text):
                return DisplayProgress(again_s=early_s)
            rest = await self._edit_answer(shown, token, status, text)
        if rest is None:
            shown.doubtful = False
            return DisplayProgress()
        shown.live_text = ""
        self.edits.remove(request)
        pending = token is not None and not status.is_settled
        await self._writer.record(shown, owner, answered=True, answer_pending=pending)
        for draft in rest:  # at most once, because Discord would not recognize a repetition
            with suppress(discord.HTTPException):
                await webhook_of(self.client, token or "").send(
                    draft.content, files=as_files(draft.files), ephemeral=True
                )
        if not pending:
            await self.context.store.interactions.drop_token(request)
        return DisplayProgress(again_s=0.0)

    async def _settle_answer(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> None:
        """Show in the answer how the confirmation ended; the report there calls it pending."""
        request = shown.state.answer or ""
        kept = await self.context.store.interactions.answer_of(request)
        if kept.token is not None:
            await self._edit_answer(shown, kept.token, status, "")
        await self._writer.record(shown, owner, answer_pending=False)
        await self.context.store.interactions.drop_token(request)

    async def _edit_answer(
        self, shown: DisplayedSubmission, token: str, status: SubmissionStatus, text: str
    ) -> Sequence[draw.MessageDraft] | None:
        """Edit the answer if it changed; after the last edit, return what remains to be sent."""
        try:
            if status.is_final:
                return await self._report_in_answer(token, status)
            if text != shown.live_text:
                await self.edits.wait_turn(shown.state.answer)
                view = await view_of(self.context, status)
                webhook = webhook_of(self.client, token)
                await webhook.edit_message(ORIGINAL, content=text, view=view)
        except discord.HTTPException as error:
            if is_temporary(error):
                raise
            message = "an answer is lost"  # expired, or removed by the person
            _log.info(message, action="answer_lost", id=shown.submission, error=repr(error))
            return ()
        shown.live_text = text
        return None

    async def _report_in_answer(
        self, token: str, status: SubmissionStatus
    ) -> Sequence[draw.MessageDraft]:
        first, *others = draw.message_drafts(await full_report(self.context, status))
        text = f"{first.content}\n{draw.again_line(status)}"
        await webhook_of(self.client, token).edit_message(
            ORIGINAL,
            content=text if len(text) <= MESSAGE_LIMIT else first.content,
            view=await view_of(self.context, status),
            attachments=as_files(first.files),
        )
        return others

    async def _advance_private(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> DisplayProgress:
        """Send the report where only the person reads it; a live message until it is final."""
        try:
            again_s = await self._update_private_part(shown, owner, status)
        except ThreadBusyError:
            return DisplayProgress(again_s=_RETRY_S, requested=False)
        except discord.HTTPException as error:
            if is_temporary(error):
                raise
            again_s = await self._fall_back(shown, owner, error)
        if again_s is not None:
            return DisplayProgress(again_s=again_s)
        if not status.is_settled:
            shown.doubtful = False
            return DisplayProgress()
        if shown.state.answer_pending:
            await self._settle_answer(shown, owner, status)
        shown.private, shown.lost, shown.refusals = True, 0, 0
        return DisplayProgress(again_s=0.0)

    async def _update_private_part(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> float | None:
        """Update the private part; return the seconds to wait when it is too early to edit."""
        if not shown.state.unseen:
            await self._open(shown, owner, status)
        if shown.state.unseen:
            return None
        again_s = None
        if not status.is_final or await self._has_live(shown, owner, status):
            again_s = await self._draw_live(shown, owner, status)
        if again_s is None and status.is_final:
            await self._report(shown, owner, status)
            await send_result(self._writer, shown, owner, status)
            await send_confirmation(self._writer, shown, owner, status)
        return again_s

    async def _open(self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus) -> None:
        """Find the person's thread, create it, or use direct messages if that is impossible."""
        state, person = shown.state, status.submission.person
        if not state.in_guild or state.direct is not None:
            return
        channel = await channels.channel_of(self.client, state.channel)
        if state.thread is not None:
            if channel is not None:
                await self._threads.use(channel.guild, status.board, person, state.thread)
        elif channel is None or not channels.has_private_threads(channel):
            await self._use_direct_messages(shown, owner)
        else:
            reader = person, state.user
            thread = await self._threads.private(channel, status.board, reader, shown.lost)
            await self._writer.record(shown, owner, thread=thread)
            await self._threads.use(channel.guild, status.board, person, thread)

    async def _fall_back(
        self,
        shown: DisplayedSubmission,
        owner: str,
        error: discord.HTTPException,
    ) -> float:
        """Try again, in another thread or in direct messages; else the report can be requested."""
        state = shown.state
        message = "a private message is refused"
        _log.info(message, action="room_lost", id=shown.submission, error=repr(error))
        shown.refusals += 1
        if shown.refusals == 1 and error.code == channels.TOO_MANY_THREADS:
            return _ARCHIVED_S
        if not state.in_guild or state.direct is not None:
            await self._writer.record(shown, owner, unseen=True)
        elif state.thread is not None and channels.is_lost(error) and not shown.lost:
            shown.lost, shown.live_text = state.thread, ""
            await self._writer.record(shown, owner, thread=None, live=None, first=0, reported=0)
        else:
            await self._use_direct_messages(shown, owner)
        return _RETRY_S

    async def _use_direct_messages(self, shown: DisplayedSubmission, owner: str) -> None:
        """Switch to direct messages if there are some; else the report can be requested."""
        found = await channels.direct_messages(self.client, self.context, shown.state.user)
        if found is None:
            await self._writer.record(shown, owner, unseen=True)
            return
        shown.live_text = ""
        sent = {"live": None, "first": 0, "reported": 0}
        await self._writer.record(shown, owner, direct=found.id, **sent)

    async def _has_live(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> bool:
        """Return whether there is a live message, perhaps one that was not recorded."""
        if shown.state.live is None and not shown.state.reported:
            sent = OnceMessage.of_text(draw.live_text(status), "")
            found = await self._writer.find_sent(shown, shown.state.private, sent)
            if found is not None:
                await self._writer.record(shown, owner, live=found.id)
        return shown.state.live is not None

    async def _draw_live(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> float | None:
        """Send or edit the live message; return the seconds to wait when it is too early."""
        text = draw.live_text(status)
        live = shown.state.live
        if live is None:
            nonce = f"{shown.submission}-live"
            view = await view_of(self.context, status)
            message = OnceMessage.of_text(text, nonce, view)
            found = await self._writer.send_once(shown, shown.state.private, message)
            await self._writer.record(shown, owner, live=found.id)
            shown.live_text = text if found.content == text.strip() else ""
            live = found.id
        if text != shown.live_text:
            early_s = self.edits.wait_for(live)
            if early_s > 0:
                return early_s
            await self.edits.wait_turn(live)
            # At the end, the offer of notifications belongs to the report below this message.
            view = buttons_of(status) if status.is_final else await view_of(self.context, status)
            await self._edit(shown.state, live, text, view)
        shown.live_text = text
        return None

    async def _edit(
        self, state: channels.SubmissionDisplay, message: int, text: str, view: discord.ui.View
    ) -> None:
        channel = self.client.get_partial_messageable(state.private)
        try:
            await channel.get_partial_message(message).edit(content=text, view=view)
        except discord.NotFound as error:
            # A message that a person deleted is not sent again.
            if error.code != _UNKNOWN_MESSAGE:
                raise

    async def _report(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> None:
        """Send the messages of the report that were not sent yet; the last has the buttons."""
        drafts = draw.message_drafts(await full_report(self.context, status))
        for number, draft in enumerate(drafts, start=1):
            if number > shown.state.reported:
                view = await view_of(self.context, status) if number == len(drafts) else None
                nonce = f"{shown.submission}-report-{number}"
                message = OnceMessage.of_draft(draft, nonce, view, shown.state.first)
                sent = await self._writer.send_once(shown, shown.state.private, message)
                first = shown.state.first or sent.id
                await self._writer.record(shown, owner, reported=number, first=first)


ORIGINAL: int = "@original"  # type: ignore[assignment]
"""Discord's id of the answer to an interaction; discord.py sends it unchanged."""


async def full_report(context: DiscordContext, status: SubmissionStatus) -> Report:
    """Return the report for the submission's owner, with the files of a profile."""
    store, submission = context.store, status.submission
    files = await profile_files(store, submission)
    places = await placements(store, submission.id) if status.is_final else ()
    source = await store.submissions.source(submission.id)
    return await asyncio.to_thread(short_report, status, places, files, source)
