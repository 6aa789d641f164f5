"""Advances one submission's display: thread, live message, report, public line.

Every step is recorded as soon as it is done, and each message has a nonce: a process that resumes
neither skips nor repeats a message. Discord remembers a nonce only for minutes. After a failure, or
if another process started the display, the recent messages are therefore read before one is sent.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import discord
import structlog

from bot.discord import channels, draw
from bot.discord.buttons import buttons_of
from bot.discord.context import DiscordContext
from bot.discord.responses import as_files
from bot.discord.roles import channel_credentials
from bot.domain.ids import SubmissionId
from bot.domain.status import SubmissionStatus, with_costs
from bot.domain.submission import Display
from bot.reports.blocks import Report
from bot.reports.submission import status_report
from bot.services.standings import placements
from bot.services.status import profile_files, submission_status
from runners.contract.task import Mode

_log = structlog.get_logger(__name__)

_UNKNOWN_MESSAGE = 10008
"""Discord's code when a message was deleted."""
_RETRY_S = 0.5
"""Seconds until the next attempt after a thread was lost."""
_MOST_SEARCHED = 100
"""How many recent messages are searched for one that may have been sent: one request's worth."""


@dataclass(slots=True)
class DisplayedSubmission:
    """A display that this process holds."""

    submission: SubmissionId
    state: channels.SubmissionDisplay
    live_text: str = ""
    """The live message's text on Discord, as far as this process knows."""
    doubtful: bool = False
    """Whether a message may have been sent but not recorded."""
    private: bool = False
    """Whether everything private was sent."""
    queued: bool = False
    """Whether one of its jobs waits; its queue position then changes without a notice."""

    @classmethod
    def of(cls, display: Display) -> "DisplayedSubmission":
        """Return the display as stored; its previous holder may have stopped at any point."""
        state = channels.SubmissionDisplay.model_validate_json(display.place)
        return cls(display.submission, state, doubtful=display.claims > 1)


@dataclass(frozen=True, slots=True)
class DisplayProgress:
    """How far a display is: finished, or when to check it again."""

    done: bool = False
    again_s: float | None = None


class DisplayTakenOverError(Exception):
    """Another process has taken this display over."""


@dataclass(frozen=True, slots=True)
class _Message:
    """A message to send once: its nonce, and how to recognize it."""

    text: str
    nonce: str
    matches: Callable[[discord.Message], bool]
    files: Sequence[discord.File] = ()
    view: discord.ui.View | None = None


EDITS_PER_S = 15.0
"""Edits per second of all live messages; Discord allows a bot 50 requests per second in all."""


@dataclass(slots=True)
class EditRateLimiter:
    """Limits the rate of edits, per message and overall."""

    next_edit: float = 0.0
    last: dict[int, float] = field(default_factory=dict)

    def wait_for(self, message: int) -> float:
        """Return the seconds until this message may be edited again."""
        return max(0.0, self.last.get(message, 0.0) + channels.EDIT_INTERVAL_S - time.monotonic())

    async def wait_turn(self, message: int) -> None:
        """Wait for the next edit allowed overall."""
        now = time.monotonic()
        at = max(now, self.next_edit)
        self.next_edit = at + 1 / EDITS_PER_S
        self.last[message] = at
        if at > now:
            await asyncio.sleep(at - now)

    def remove(self, message: int) -> None:
        """Drop a message that will not be edited again."""
        self.last.pop(message, None)


@dataclass(frozen=True, slots=True)
class ThreadUpdater:
    """Updates the messages that show submissions on Discord."""

    client: discord.Client
    context: DiscordContext
    edits: EditRateLimiter = field(default_factory=EditRateLimiter)

    async def advance(self, shown: DisplayedSubmission, owner: str) -> DisplayProgress:
        """Draw what has changed; may be repeated. Raises the errors of Discord and the store."""
        status = await status_of(self.context, shown.submission)
        shown.queued = any(each.place is not None for each in status.jobs)
        again_s = await self._update_private_part(shown, owner, status)
        if again_s is not None:
            return DisplayProgress(again_s=again_s)
        if not status.is_final:
            shown.doubtful = False
            return DisplayProgress()
        if not shown.private:
            shown.private = True
            # The private reports of all submissions come before any public line.
            return DisplayProgress(again_s=0.0)
        if not status.is_settled:
            shown.doubtful = False
            return DisplayProgress()
        await self._post_publicly(shown, owner, status)
        state = shown.state.model_dump_json()
        await self.context.store.displays.finish(shown.submission, owner, state)
        return DisplayProgress(done=True)

    async def _record(self, shown: DisplayedSubmission, owner: str, **changes: object) -> None:
        shown.state = shown.state.model_copy(update=changes)
        state = shown.state.model_dump_json()
        if not await self.context.store.displays.save_state(shown.submission, owner, state):
            raise DisplayTakenOverError

    async def _update_private_part(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> float | None:
        """Update the private part; return the seconds to wait when it is too early to edit."""
        if shown.state.unseen:
            return None
        try:
            await self._open(shown, owner, status)
            again_s = await self._draw_live(shown, owner, status)
            if again_s is None and status.is_final:
                await self._report(
                    shown, owner, draw.message_drafts(await full_report(self.context, status))
                )
                await self._report_confirmation(shown, owner, status)
        except discord.HTTPException as error:
            if not shown.state.in_guild or not channels.is_lost(error):
                raise
            message = "a thread is lost"
            _log.info(message, action="room_lost", id=shown.submission, error=repr(error))
            if error.code != channels.ARCHIVED or not await channels.reopen_thread(
                self.client, shown.state
            ):
                await self._use_direct_messages(shown, owner)
            return _RETRY_S
        return again_s

    async def _use_direct_messages(self, shown: DisplayedSubmission, owner: str) -> None:
        """Switch from a lost thread to direct messages; if those are closed, stop."""
        if shown.state.direct is not None:
            await self._record(shown, owner, unseen=True)
            return
        shown.live_text, shown.private = "", False
        channel = await self.client.create_dm(discord.Object(shown.state.user))
        await self._record(shown, owner, direct=channel.id, live=None, reported=0)

    async def _open(self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus) -> None:
        """Open a private thread for the person, or direct messages if none can be created."""
        state = shown.state
        if not state.in_guild or state.thread is not None or state.direct is not None:
            return
        thread = await channels.private_thread(
            self.client, state.channel, draw.thread_name(status), may_exist=shown.doubtful
        )
        if thread is None:
            await self._use_direct_messages(shown, owner)
            return
        await thread.add_user(discord.Object(state.user))
        await self._record(shown, owner, thread=thread.id)

    async def _draw_live(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> float | None:
        """Send or edit the live message; return the seconds to wait when it is too early."""
        text = draw.live_text(status)
        live = shown.state.live
        if live is None:
            live = await self._send_live(shown, owner, status)
        if text != shown.live_text:
            early_s = self.edits.wait_for(live)
            if early_s > 0:
                return early_s
            await self.edits.wait_turn(live)
            await self._edit(shown.state, live, text, buttons_of(status))
        shown.live_text = text
        return None

    async def _send_live(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> int:
        """Send the live message, or find it if an earlier attempt sent it with older text."""
        first_line, text = draw.headline(status), draw.live_text(status)
        nonce = f"{shown.submission}-live"
        message = _Message(
            text, nonce, lambda old: old.content.startswith(first_line), view=buttons_of(status)
        )
        found = await self._send_once(shown, shown.state.private, message)
        await self._record(shown, owner, live=found.id)
        shown.live_text = text if found.content == text.strip() else ""
        return found.id

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
        self, shown: DisplayedSubmission, owner: str, report: Sequence[draw.MessageDraft]
    ) -> None:
        for number, draft in enumerate(report, start=1):
            if number > shown.state.reported:
                message = _as_message(draft, f"{shown.submission}-report-{number}")
                await self._send_once(shown, shown.state.private, message)
                await self._record(shown, owner, reported=number)

    async def _report_confirmation(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> None:
        """Send how its confirmation ended, if the report said that it was pending."""
        if not status.is_settled and not shown.state.awaited:
            await self._record(shown, owner, awaited=True)
        if status.is_settled and shown.state.awaited and not shown.state.confirmed:
            text = draw.confirmation_text(status)
            first_line, nonce = text.splitlines()[0], f"{shown.submission}-confirmed"
            message = _Message(text, nonce, lambda old: old.content.startswith(first_line))
            await self._send_once(shown, shown.state.private, message)
            await self._record(shown, owner, confirmed=True)

    async def _post_publicly(
        self, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
    ) -> None:
        """Send the public line, with a thread that shows the times to others."""
        if status.submission.mode is not Mode.RANKED or not shown.state.in_guild:
            return
        ranks = await placements(self.context.store, shown.submission)
        readers = channel_credentials(self.client, shown.state.channel)
        if not ranks or not status.board.access.admits(readers):
            return
        channel = await channels.channel_of(self.client, shown.state.channel)
        if channel is None or not channels.bot_permissions(channel).send_messages:
            return
        try:
            if shown.state.announced is None:
                text = draw.public_line(status, shown.state.user, ranks)
                first_line = text.splitlines()[0]
                nonce = f"{shown.submission}-place"
                message = _Message(text, nonce, lambda old: old.content.startswith(first_line))
                line = await self._send_once(shown, channel.id, message)
                await self._record(shown, owner, announced=line.id)
            await self._open_publicly(shown, owner, status, channel)
        except (discord.Forbidden, discord.NotFound) as error:
            refused = "a public line is refused"
            _log.info(refused, action="line_lost", id=shown.submission, error=repr(error))

    async def _open_publicly(
        self,
        shown: DisplayedSubmission,
        owner: str,
        status: SubmissionStatus,
        channel: discord.TextChannel,
    ) -> None:
        may = channels.bot_permissions(channel)
        allowed = may.create_public_threads and may.send_messages_in_threads
        if shown.state.opened or shown.state.announced is None or not allowed:
            return
        await channels.open_public_thread(
            channel, shown.state.announced, draw.thread_name(status), doubtful=shown.doubtful
        )
        for number, draft in enumerate(draw.message_drafts(status_report(status)), start=1):
            message = _as_message(draft, f"{shown.submission}-public-{number}")
            await self._send_once(shown, shown.state.announced, message)
        await self._record(shown, owner, opened=True)

    async def _send_once(
        self, shown: DisplayedSubmission, channel: int, message: _Message
    ) -> discord.Message:
        """Return the message, sent now or by an earlier attempt."""
        destination = self.client.get_partial_messageable(channel)
        if shown.doubtful:
            async for old in destination.history(limit=_MOST_SEARCHED):
                if old.author == self.client.user and message.matches(old):
                    return old
        view = discord.utils.MISSING if message.view is None else message.view
        return await destination.send(
            message.text, view=view, files=message.files, nonce=message.nonce
        )


def _as_message(draft: draw.MessageDraft, nonce: str) -> _Message:
    names = [file.name for file in draft.files]

    def matches(old: discord.Message) -> bool:
        same = old.content == draft.content.strip()
        return same and len(old.attachments) == len(names)

    return _Message(draft.content, nonce, matches, as_files(draft.files))


async def status_of(context: DiscordContext, submission: SubmissionId) -> SubmissionStatus:
    """Return the current state of a submission, with its costs."""
    return with_costs(
        await submission_status(context.store, submission), context.store.costs.prices
    )


async def full_report(context: DiscordContext, status: SubmissionStatus) -> Report:
    """Return the report for the submission's owner, with the files of a profile."""
    files = await profile_files(context.store, status.submission)
    return await asyncio.to_thread(status_report, status, files)
