"""Advances one submission's display: thread, live message, report, public line.

Every step is recorded as soon as it is done, and each message has a nonce, so that a process that
resumes neither skips nor repeats a message. Discord remembers a nonce only for minutes: after a
failure, or when another process began, the recent messages are read first.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import discord
import structlog

from bot.discord import channels
from bot.discord.buttons import buttons_of
from bot.discord.context import DiscordContext
from bot.discord.draw import MessageDraft, headline, line_text, live_text, sheets, thread_name
from bot.discord.responses import as_files
from bot.discord.roles import of_room
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
_AGAIN_S = 0.5
"""Seconds before the next attempt in another place."""
_LOOK_BACK = 100
"""How many messages are searched for one in doubt: as many as one request returns."""


@dataclass(slots=True)
class DisplayedSubmission:
    """A display that this process holds."""

    submission: SubmissionId
    place: channels.SubmissionDisplay
    drawn: str = ""
    """The live message on Discord, as far as this process knows."""
    doubtful: bool = False
    """Whether a message may have been sent but not recorded."""
    private: bool = False
    """Whether everything private was sent."""
    queued: bool = False
    """Whether one of its jobs waits, so that its position changes."""

    @classmethod
    def of(cls, display: Display) -> "DisplayedSubmission":
        """Return the display as stored; its previous holder may have stopped at any point."""
        place = channels.SubmissionDisplay.model_validate_json(display.place)
        return cls(display.submission, place, doubtful=display.claims > 1)


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
    is_it: Callable[[discord.Message], bool]
    files: Sequence[discord.File] = ()
    view: discord.ui.View | None = None


EDITS_PER_S = 15.0
"""Edits per second of all live messages; Discord allows a bot 50 requests per second in all."""
EVERY_S = 1.5
"""Seconds between two edits of one message: a channel accepts five messages or edits in 5 s."""


@dataclass(slots=True)
class EditRateLimiter:
    """Limits the rate of edits, per message and overall."""

    next_edit: float = 0.0
    last: dict[int, float] = field(default_factory=dict)

    def wait_for(self, message: int) -> float:
        """Return the seconds until this message may be edited again."""
        return max(0.0, self.last.get(message, 0.0) + EVERY_S - time.monotonic())

    async def turn(self, message: int) -> None:
        """Wait for the next edit allowed overall."""
        now = time.monotonic()
        at = max(now, self.next_edit)
        self.next_edit = at + 1 / EDITS_PER_S
        self.last[message] = at
        if at > now:
            await asyncio.sleep(at - now)

    def forget(self, message: int) -> None:
        """Drop a message that will not be edited again."""
        self.last.pop(message, None)


@dataclass(frozen=True, slots=True)
class ThreadUpdater:
    """What is needed to show a submission."""

    client: discord.Client
    door: DiscordContext
    pace: EditRateLimiter = field(default_factory=EditRateLimiter)

    async def forward(self, show: DisplayedSubmission, owner: str) -> DisplayProgress:
        """Draw what has changed; may be repeated. Raises the errors of Discord and the store."""
        now = await status_of(self.door, show.submission)
        show.queued = any(each.place is not None for each in now.jobs)
        again_s = await self._privately(show, owner, now)
        if again_s is not None:
            return DisplayProgress(again_s=again_s)
        if not now.is_final:
            show.doubtful = False
            return DisplayProgress()
        if not show.private:
            show.private = True
            return DisplayProgress(
                again_s=0.0
            )  # private reports of all come before any public line
        await self._publicly(show, owner, now)
        written = show.place.model_dump_json()
        await self.door.store.displays.finish(show.submission, owner, written)
        return DisplayProgress(done=True)

    async def _note(self, show: DisplayedSubmission, owner: str, **changes: object) -> None:
        show.place = show.place.model_copy(update=changes)
        written = show.place.model_dump_json()
        if not await self.door.store.displays.note(show.submission, owner, written):
            raise DisplayTakenOverError

    async def _privately(
        self, show: DisplayedSubmission, owner: str, now: SubmissionStatus
    ) -> float | None:
        """Update the private part; return the seconds to wait when it is too early to edit."""
        if show.place.unseen:
            return None
        try:
            await self._open(show, owner, now)
            again_s = await self._draw_live(show, owner, now)
            if again_s is None and now.is_final:
                await self._report(show, owner, sheets(await full_report(self.door, now)))
        except discord.HTTPException as error:
            if not show.place.in_guild or not channels.is_lost(error):
                raise
            _log.info("not taken", action="room_lost", id=show.submission, error=repr(error))
            if error.code != channels.ARCHIVED or not await channels.woken(self.client, show.place):
                await self._move_on(show, owner)
            return _AGAIN_S
        return again_s

    async def _move_on(self, show: DisplayedSubmission, owner: str) -> None:
        """Switch from a lost thread to direct messages; if those are closed, stop."""
        if show.place.direct is not None:
            await self._note(show, owner, unseen=True)
            return
        show.drawn, show.private = "", False
        channel = await self.client.create_dm(discord.Object(show.place.user))
        await self._note(show, owner, direct=channel.id, live=None, reported=0)

    async def _open(self, show: DisplayedSubmission, owner: str, now: SubmissionStatus) -> None:
        """Open a private thread for the person, or direct messages if none can be created."""
        place = show.place
        if not place.in_guild or place.thread is not None or place.direct is not None:
            return
        channel = await channels.channel_of(self.client, place.channel)
        if channel is None or not channels.takes_threads(channels.may_here(channel)):
            await self._move_on(show, owner)
            return
        thread = None
        if show.doubtful:
            thread = await channels.own_thread(self.client, channel, thread_name(now))
        if thread is None:
            thread = await channels.new_thread(channel, thread_name(now))
        await thread.add_user(discord.Object(place.user))
        await self._note(show, owner, thread=thread.id)

    def _at(self, channel: int) -> discord.PartialMessageable:
        return self.client.get_partial_messageable(channel)

    async def _draw_live(
        self, show: DisplayedSubmission, owner: str, now: SubmissionStatus
    ) -> float | None:
        """Send or edit the live message; return the seconds to wait when it is too early."""
        text = live_text(now)
        live = show.place.live
        if live is None:
            live = await self._send_live(show, owner, now)
        if text != show.drawn:
            early_s = self.pace.wait_for(live)
            if early_s > 0:
                return early_s
            await self.pace.turn(live)
            await self._edit(show.place, live, text, buttons_of(now))
        show.drawn = text
        return None

    async def _send_live(self, show: DisplayedSubmission, owner: str, now: SubmissionStatus) -> int:
        """Send the live message, or find it if an earlier attempt sent it with older text."""
        begins, text = headline(now), live_text(now)
        nonce = f"{show.submission}-live"
        message = _Message(
            text, nonce, lambda old: old.content.startswith(begins), view=buttons_of(now)
        )
        found = await self._send_once(show, show.place.private, message)
        await self._note(show, owner, live=found.id)
        show.drawn = text if found.content == text.strip() else ""
        return found.id

    async def _edit(
        self, place: channels.SubmissionDisplay, message: int, text: str, view: discord.ui.View
    ) -> None:
        try:
            await self._at(place.private).get_partial_message(message).edit(content=text, view=view)
        except discord.NotFound as error:
            if error.code != _UNKNOWN_MESSAGE:
                raise  # otherwise somebody has deleted it on purpose

    async def _report(
        self, show: DisplayedSubmission, owner: str, report: Sequence[MessageDraft]
    ) -> None:
        for number, sheet in enumerate(report, start=1):
            if number > show.place.reported:
                message = _as_message(sheet, f"{show.submission}-report-{number}")
                await self._send_once(show, show.place.private, message)
                await self._note(show, owner, reported=number)

    async def _publicly(self, show: DisplayedSubmission, owner: str, now: SubmissionStatus) -> None:
        """Send the public line, with a thread that shows the times to others."""
        if now.submission.mode is not Mode.RANKED or not show.place.in_guild:
            return
        won = await placements(self.door.store, show.submission)
        readers = of_room(self.client, show.place.channel)
        if not won or not now.board.access.admits(readers):
            return
        channel = await channels.channel_of(self.client, show.place.channel)
        if channel is None or not channels.may_here(channel).send_messages:
            return
        try:
            if show.place.announced is None:
                text = line_text(now, show.place.user, won)
                begins = text.splitlines()[0]
                nonce = f"{show.submission}-place"
                message = _Message(text, nonce, lambda old: old.content.startswith(begins))
                line = await self._send_once(show, channel.id, message)
                await self._note(show, owner, announced=line.id)
            await self._open_publicly(show, owner, now, channel)
        except (discord.Forbidden, discord.NotFound) as error:
            _log.info("not taken", action="line_lost", id=show.submission, error=repr(error))

    async def _open_publicly(
        self,
        show: DisplayedSubmission,
        owner: str,
        now: SubmissionStatus,
        channel: discord.TextChannel,
    ) -> None:
        may = channels.may_here(channel)
        allowed = may.create_public_threads and may.send_messages_in_threads
        if show.place.opened or show.place.announced is None or not allowed:
            return
        await channels.open_beneath(
            channel, show.place.announced, thread_name(now), doubtful=show.doubtful
        )
        for number, sheet in enumerate(sheets(status_report(now)), start=1):
            message = _as_message(sheet, f"{show.submission}-public-{number}")
            await self._send_once(show, show.place.announced, message)
        await self._note(show, owner, opened=True)

    async def _send_once(
        self, show: DisplayedSubmission, channel: int, message: _Message
    ) -> discord.Message:
        """Return the message, sent now or by an earlier attempt."""
        where = self._at(channel)
        if show.doubtful:
            async for old in where.history(limit=_LOOK_BACK):
                if old.author == self.client.user and message.is_it(old):
                    return old
        view = discord.utils.MISSING if message.view is None else message.view
        return await where.send(message.text, view=view, files=message.files, nonce=message.nonce)


def _as_message(sheet: MessageDraft, nonce: str) -> _Message:
    names = [file.name for file in sheet.files]

    def is_it(old: discord.Message) -> bool:
        same = old.content == sheet.content.strip()
        return same and len(old.attachments) == len(names)

    return _Message(sheet.content, nonce, is_it, as_files(sheet.files))


async def status_of(door: DiscordContext, submission: SubmissionId) -> SubmissionStatus:
    """Return the current state of a submission, with its costs."""
    return with_costs(await submission_status(door.store, submission), door.prices)


async def full_report(door: DiscordContext, now: SubmissionStatus) -> Report:
    """Return the report for the submission's owner, with the files of a profile."""
    files = await profile_files(door.store, now.submission)
    return await asyncio.to_thread(status_report, now, files)
