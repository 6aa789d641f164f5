"""Shows a publication: a live message during its check, then its outcome and announcement.

Each sent message is recorded at once and has a nonce, so that a process that resumes after a kill
sends nothing twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass

import aiohttp
import discord
import structlog
from pydantic import BaseModel, ConfigDict

from bot.discord import channels
from bot.discord.buttons import board_buttons, check_buttons
from bot.discord.context import FRONT_END, DiscordContext, Interaction, context_of
from bot.discord.draw import message_drafts
from bot.discord.escaping import MESSAGE_LIMIT, line
from bot.discord.notifications import announcement, closing_line
from bot.discord.responses import as_files, is_temporary
from bot.discord.roles import channel_credentials
from bot.domain.board import Board
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import BoardId
from bot.domain.publication import PublishChange
from bot.domain.tasks.grading import HOW_TO_CHOOSE
from bot.domain.tasks.lint import CheckStep, Level
from bot.reports.blocks import Report, Text, Tone
from bot.reports.tasks import step_line, task_check_report
from bot.services.publishing.engine import PublicationEngine
from bot.services.publishing.state import HeldPublication, PublicationOutcome, PublicationState
from bot.services.submissions import best_of

_log = structlog.get_logger(__name__)

_MOST_WAIT_S = 60.0
"""The longest wait between two attempts."""
_RESERVED = 40
"""Characters reserved for the line that counts the runs not shown."""


class PublicationThread(BaseModel):
    """The channel that a publication came from, and what was sent so far."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: int
    user: int
    thread: int | None = None
    """The id of the private thread, or of the direct messages."""
    direct: bool = False
    """Whether `thread` is direct messages."""
    live: int | None = None
    """The live message of the check."""
    told: int = 0
    """How many messages of the outcome were sent."""
    announced: bool = False
    """Whether the board was announced, or the question about rejudging was sent."""

    @classmethod
    def of_interaction(cls, interaction: Interaction) -> "PublicationThread":
        """Return the state of a new publication, before anything is sent."""
        return cls(channel=channels.home_channel(interaction), user=interaction.user.id)


async def require_private_place(interaction: Interaction) -> str:
    """Return where the person can follow a publication; UserError if the bot may not write there.

    Outside of private threads it may write only to people who have begun direct messages.
    """
    client, context = interaction.client, context_of(interaction)
    channel = await channels.channel_of(client, channels.home_channel(interaction))
    if channel is not None and channels.has_private_threads(channel):
        return "your private thread"
    if await channels.direct_messages(client, context, interaction.user.id) is not None:
        return "our direct messages"
    raise UserError(
        "no-private-place",
        "I can neither create a private thread here nor begin direct messages with you: "
        f"{channels.OPEN_CONVERSATION}, then run this one again",
    )


def run_publications(
    client: discord.Client, context: DiscordContext
) -> AbstractAsyncContextManager[None]:
    """Check and publish the tasks submitted on Discord, from the connection to the block's end."""

    def observe(held: HeldPublication) -> PublicationPoster:
        return PublicationPoster.of(client, context, held)

    return PublicationEngine(
        context.store,
        context.clock,
        FRONT_END,
        context.lease,
        observe,
        client.wait_until_ready,
    ).running()


@dataclass(slots=True)
class PublicationPoster:
    """Shows one publication in a private thread of its submitter."""

    client: discord.Client
    context: DiscordContext
    held: HeldPublication
    thread: PublicationThread

    @classmethod
    def of(
        cls, client: discord.Client, context: DiscordContext, held: HeldPublication
    ) -> "PublicationPoster":
        """Return the poster of a publication, with what was sent so far."""
        return cls(
            client, context, held, PublicationThread.model_validate_json(held.publication.place)
        )

    async def changed(self, state: PublicationState) -> None:
        """Send the live message, or edit it."""
        await self._retry(lambda: self._draw(state))
        await asyncio.sleep(channels.EDIT_INTERVAL_S)

    async def finished(self, state: PublicationState) -> None:
        """Send what was not sent yet of the outcome, then announce the board."""
        outcome = state.outcome
        if outcome is not None:
            await self._retry(lambda: self._send_outcome(state, outcome))
            await self._retry(lambda: self._announce(outcome))

    @property
    def _name(self) -> str:
        return self.held.request.name or ""

    @property
    def _nonce(self) -> str:
        return f"release-{self.held.publication.id}"

    async def _record(self, **changes: object) -> None:
        self.thread = self.thread.model_copy(update=changes)
        await self.held.save_place(self.thread.model_dump_json())

    async def _retry(self, action: Callable[[], Awaitable[None]]) -> None:
        """Repeat while Discord or the store is unavailable; give up if Discord refuses."""
        wait_s = 1.0
        while True:
            try:
                return await action()
            except (StoreError, discord.DiscordException, aiohttp.ClientError, OSError) as error:
                message = "a publication is not shown"
                _log.warning(message, action="release_untold", error=repr(error))
                if not (isinstance(error, StoreError) or is_temporary(error)):
                    return None
            await asyncio.sleep(wait_s)
            wait_s = min(_MOST_WAIT_S, 2 * wait_s)

    async def _draw(self, state: PublicationState) -> None:
        channel = await self._private_channel()
        tries = self.held.publication.tries
        text = live_text(self._name, state.steps, tries, has_ended=state.outcome is not None)
        view = (
            None if state.publishing or state.outcome else check_buttons(self.held.publication.id)
        )
        if self.thread.live is None:
            shown = discord.utils.MISSING if view is None else view
            message = await channel.send(text, view=shown, nonce=f"{self._nonce}-live")
            await self._record(live=message.id)
            return
        with suppress(discord.NotFound):  # a message that a person deleted is not sent again
            await channel.get_partial_message(self.thread.live).edit(content=text, view=view)

    async def _private_channel(self) -> discord.PartialMessageable:
        """Return a private thread for the person, or direct messages if none can be created.

        ClientException if there are no direct messages either.
        """
        if self.thread.thread is None:
            name = f"Check {self.held.publication.id}: {self._name}"
            thread = await channels.private_thread(
                self.client, self.thread.channel, name, may_exist=True
            )
            if thread is None:
                await self._use_direct_messages()
            else:
                await thread.add_user(discord.Object(self.thread.user))
                await self._record(thread=thread.id)
        return self.client.get_partial_messageable(self.thread.thread or 0)

    async def _use_direct_messages(self) -> None:
        """Switch to direct messages, and send again there what was sent so far."""
        found = await channels.direct_messages(self.client, self.context, self.thread.user)
        if found is None:
            raise discord.ClientException("no private thread, and no direct messages with them")
        await self._record(thread=found.id, direct=True, live=None, told=0)

    async def _send_outcome(self, state: PublicationState, outcome: PublicationOutcome) -> None:
        """Send the outcome to the person, by direct message if Discord refuses the thread."""
        try:
            await self._send_outcome_here(state, outcome)
        except discord.HTTPException as error:
            if self.thread.direct or is_temporary(error):
                raise
            await self._use_direct_messages()
            await self._send_outcome_here(state, outcome)

    async def _send_outcome_here(
        self, state: PublicationState, outcome: PublicationOutcome
    ) -> None:
        drafts = message_drafts(outcome_report(outcome))
        if self.thread.live is None or not self.thread.told:
            await self._draw(state)
        for number, draft in enumerate(drafts, start=1):
            if number > self.thread.told:
                channel = await self._private_channel()
                nonce = f"{self._nonce}-{number}"
                await channel.send(draft.content, files=as_files(draft.files), nonce=nonce)
                await self._record(told=number)

    async def _announce(self, outcome: PublicationOutcome) -> None:
        """Announce a new board, or offer to rejudge submissions to an updated one; only once."""
        if outcome.board is not None and not self.thread.announced:
            await self._announce_board(outcome, outcome.board)
            await self._record(announced=True)

    async def _announce_board(self, outcome: PublicationOutcome, number: BoardId) -> None:
        board = await self.context.store.boards.get(number)
        if board is None:
            return  # deleted meanwhile
        match outcome.change:
            case PublishChange.NEW_VERSION:
                await self._ask_to_rejudge(board, outcome.before)
            case PublishChange.CREATED:
                await self._announce_new(board)
            case PublishChange.CONFIGURED | PublishChange.UNCHANGED:
                pass

    async def _ask_to_rejudge(self, board: Board, before: int) -> None:
        versions = await self.context.store.boards.versions(board.id)
        earlier = next((each.id for each in versions if each.number == before), None)
        best = () if earlier is None else await best_of(self.context.store, board, earlier)
        channel = await self._private_channel()
        question, view = "No ranked submissions yet.", discord.utils.MISSING
        if best:
            question = f"Judge everyone's best submission ({len(best)}) with the new version too?"
            view = board_buttons(board, before, rejudge=True)
        await channel.send(
            f"{closing_line(board.deadline)} {question}", view=view, nonce=f"{self._nonce}-news"
        )

    async def _announce_new(self, board: Board) -> None:
        nonce = f"{self._nonce}-news"
        version = await self.context.store.boards.version(board.task_version)
        if version is None:
            return
        channel = await channels.channel_of(self.client, self.thread.channel)
        if not board.access.admits(channel_credentials(self.client, self.thread.channel)):
            why = "not everyone there may see it"
        elif channel is None or not channels.bot_permissions(channel).send_messages:
            why = "I cannot write there"
        else:
            view = board_buttons(board, 1, rejudge=False)
            await channel.send(announcement(board, version.definition), view=view, nonce=nonce)
            return
        private = await self._private_channel()
        notice = f"The board is not announced in <#{self.thread.channel}>: {why}."
        await private.send(f"{notice} {closing_line(board.deadline)}", nonce=nonce)


def outcome_report(outcome: PublicationOutcome) -> Report:
    """Return who grades and the board's result; after a failed check its findings, errors first."""
    if outcome.report is not None:
        blocks = task_check_report(outcome.report).blocks
        if outcome.report.undecided:
            message = f"Nothing was published. To publish, {HOW_TO_CHOOSE}."
            return Report(outcome.title, (*blocks, Text(message, Tone.BAD)))
        message = "Nothing was published. Fix the task and run the command again."
        errors = [each for each in blocks if isinstance(each, Text) and each.tone is Tone.BAD]
        others = [each for each in blocks if each not in errors]
        return Report(outcome.title, (*errors, Text(message, Tone.BAD), *others))
    return Report(outcome.title, tuple(_outcome_lines(outcome)))


def _outcome_lines(outcome: PublicationOutcome) -> Iterator[Text]:
    if outcome.grading:
        yield Text(outcome.grading)
    yield Text(outcome.message, Tone.GOOD if outcome.published else Tone.BAD)
    for gpu, why in outcome.checked:
        if why:
            yield Text(f"not run on {gpu}: {why}", Tone.QUIET)
    for words in outcome.ignored:
        yield Text(f"ignored: {words}", Tone.QUIET)
    for each in outcome.boards:
        yield from _outcome_lines(each)


def live_text(
    name: str, steps: tuple[CheckStep, ...], tries: int, *, has_ended: bool = False
) -> str:
    """Return how many runs have ended, and one line per run, as many as fit.

    If the check `has_ended` before some of its runs, those were stopped.
    """
    ended = sum(each.finding is not None for each in steps)
    nothing = "nothing was run" if has_ended else "reading its files"
    count = f"{ended} of {len(steps)} runs have ended" if steps else nothing
    if has_ended and ended < len(steps):
        count += f", {len(steps) - ended} stopped"
        steps = tuple(each for each in steps if each.finding is not None)
    head = f"**Checking the task of {line(name)}**: {count}"
    if tries > 1:
        head += "\n-# started again, because the bot was restarted"
    several = len({each.gpu for each in steps}) > 1
    lines = [
        f"> {_mark(each)} {line(step_line(each, with_gpu=several), 160)}"
        for each in sorted(steps, key=_sort_key)
    ]
    text = head
    for number, each in enumerate(lines):
        if len(text) + len(each) > MESSAGE_LIMIT - _RESERVED:
            return f"{text}\n> and {len(lines) - number} more"
        text += f"\n{each}"
    return text


def _sort_key(step: CheckStep) -> int:
    """Sort failed runs first, then running, ended and waiting ones."""
    if step.finding is not None:
        return 0 if step.finding.level is Level.ERROR else 2
    return 3 if step.stage is None else 1


def _mark(step: CheckStep) -> str:
    if step.finding is None:
        return "▫️" if step.stage is None else "▶️"
    return "🔴" if step.finding.level is Level.ERROR else "🟢"
