"""The state of a submission's display in the process that holds it; sends each message once."""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import discord

from bot.discord import channels, draw
from bot.discord.channels import SubmissionDisplay
from bot.discord.context import DiscordContext
from bot.discord.responses import as_files
from bot.domain.ids import SubmissionId
from bot.domain.submission import Display

_MOST_SEARCHED = 100
"""How many recent messages are searched for one that may have been sent: one request's worth."""


class Phase(IntEnum):
    """The phases of a display. Discord limits each one separately, so none waits for another.

    Edits of different answers share no limit. A channel accepts one new thread and one message per
    second.
    """

    ANSWER = 0
    """Progress and report in the answer to the command."""
    THREAD = 1
    """The report in the person's thread."""
    LINE = 2
    """The public line."""


@dataclass(slots=True)
class DisplayedSubmission:
    """A display that this process holds."""

    submission: SubmissionId
    state: SubmissionDisplay
    live_text: str = ""
    """The live message's text on Discord, as far as this process knows."""
    doubtful: bool = False
    """Whether a message may have been sent but not recorded."""
    private: bool = False
    """Whether everything private was sent."""
    queued: bool = False
    """Whether one of its jobs waits; its queue position then changes without a notice."""
    lost: int = 0
    """The id of a thread that was found to be lost; 0 for none."""
    refusals: int = 0
    """How often Discord refused a request of this phase."""

    @classmethod
    def of(cls, display: Display) -> "DisplayedSubmission":
        """Return the display as stored; its previous holder may have stopped at any point."""
        state = SubmissionDisplay.model_validate_json(display.place)
        return cls(display.submission, state, doubtful=display.claims > 1)

    @property
    def phase(self) -> Phase:
        """Return the phase that comes next."""
        if self.state.answer is not None and not self.state.answered:
            return Phase.ANSWER
        return Phase.LINE if self.private else Phase.THREAD


@dataclass(frozen=True, slots=True)
class DisplayProgress:
    """How far a display is: finished, or when to check it again."""

    done: bool = False
    again_s: float | None = None
    waits: bool = False
    """Whether nothing can change before that time, whatever notices arrive."""
    requested: bool = True
    """Whether a request may have been sent to Discord; if not, its outage may continue."""


class DisplayTakenOverError(Exception):
    """Another process has taken this display over."""


EDITS_PER_S = 15.0
"""Edits per second of all live messages; Discord allows a bot 50 requests per second in all."""


@dataclass(slots=True)
class EditRateLimiter:
    """Limits the rate of edits, per message and overall."""

    next_edit: float = 0.0
    last: dict[Hashable, float] = field(default_factory=dict)

    def wait_for(self, message: Hashable) -> float:
        """Return the seconds until this message may be edited again."""
        return max(0.0, self.last.get(message, 0.0) + channels.EDIT_INTERVAL_S - time.monotonic())

    def begin(self, message: Hashable) -> None:
        """Count a new message as edited now, unless it is known."""
        self.last.setdefault(message, time.monotonic())

    async def wait_turn(self, message: Hashable) -> None:
        """Wait for the next edit allowed overall."""
        now = time.monotonic()
        at = max(now, self.next_edit)
        self.next_edit = at + 1 / EDITS_PER_S
        self.last[message] = at
        if at > now:
            await asyncio.sleep(at - now)

    def remove(self, message: Hashable) -> None:
        """Drop a message that will not be edited again."""
        self.last.pop(message, None)


@dataclass(frozen=True, slots=True)
class OnceMessage:
    """A message to send once: its nonce, and how to recognize it."""

    text: str
    nonce: str
    matches: Callable[[discord.Message], bool]
    files: Sequence[discord.File] = ()
    view: discord.ui.View | None = None
    silent: bool = False
    mentions: int = 0
    """The id of the only user whom it mentions; 0 for no one."""
    after: int = 0
    """The id of an earlier message; only later ones are searched for it."""

    @classmethod
    def of_draft(
        cls, draft: draw.MessageDraft, nonce: str, view: discord.ui.View | None, after: int
    ) -> "OnceMessage":
        """Return a message of a report, which is recognized by its first line and its files.

        The rest may differ at the next attempt, because it has the person's current place.
        """
        count, first_line = len(draft.files), draft.content.strip().split("\n")[0]

        def matches(old: discord.Message) -> bool:
            return old.content.split("\n")[0] == first_line and len(old.attachments) == count

        return cls(draft.content, nonce, matches, as_files(draft.files), view, after=after)

    @classmethod
    def of_text(
        cls, text: str, nonce: str, view: discord.ui.View | None = None, *, silent: bool = False,
        mentions: int = 0,
    ) -> "OnceMessage":  # fmt: skip
        """Return a message that is recognized by its first line."""
        first = text.splitlines()[0]

        def matches(old: discord.Message) -> bool:
            return old.content.startswith(first)

        return cls(text, nonce, matches, view=view, silent=silent, mentions=mentions)


@dataclass(frozen=True, slots=True)
class DisplayWriter:
    """Sends messages once, and records what was sent."""

    client: discord.Client
    context: DiscordContext

    async def record(self, shown: DisplayedSubmission, owner: str, **changes: object) -> None:
        """Store what was sent; DisplayTakenOverError when another process holds the display."""
        shown.state = shown.state.model_copy(update=changes)
        state = shown.state.model_dump_json()
        if not await self.context.store.displays.save_state(shown.submission, owner, state):
            raise DisplayTakenOverError

    async def finish(self, shown: DisplayedSubmission, owner: str) -> DisplayProgress:
        """End the display."""
        state = shown.state.model_dump_json()
        await self.context.store.displays.finish(shown.submission, owner, state)
        return DisplayProgress(done=True)

    async def find_sent(
        self, shown: DisplayedSubmission, channel: int, message: OnceMessage
    ) -> discord.Message | None:
        """Return the message of an earlier attempt, if there may have been one."""
        if not shown.doubtful:
            return None
        history = self.client.get_partial_messageable(channel).history(limit=_MOST_SEARCHED)
        async for old in history:
            if old.id <= message.after:
                return None
            if old.author == self.client.user and message.matches(old):
                return old
        return None

    async def send_once(
        self, shown: DisplayedSubmission, channel: int, message: OnceMessage
    ) -> discord.Message:
        """Return the message, sent now or by an earlier attempt."""
        found = await self.find_sent(shown, channel, message)
        if found is not None:
            return found
        return await self.client.get_partial_messageable(channel).send(
            message.text,
            view=discord.utils.MISSING if message.view is None else message.view,
            files=message.files,
            nonce=message.nonce,
            silent=message.silent,
            allowed_mentions=discord.AllowedMentions(users=[discord.Object(message.mentions)])
            if message.mentions
            else discord.AllowedMentions.none(),
        )
