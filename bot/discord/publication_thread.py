"""Shows a publication: a live message during its check, then its outcome and announcement.

Each sent message is recorded at once and has a nonce, so that a process that resumes after a kill
sends nothing twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass

import aiohttp
import discord
import structlog
from pydantic import BaseModel, ConfigDict

from bot.discord import channels
from bot.discord.board_threads import GuildThreads
from bot.discord.buttons import board_buttons, check_buttons
from bot.discord.context import FRONT_END, DiscordContext, Interaction, interaction_key
from bot.discord.draw import MessageDraft, message_drafts
from bot.discord.notifications import announcement, closing_line
from bot.discord.publication_messages import live_text, outcome_report, rejudge_question
from bot.discord.responses import as_files, is_temporary, webhook_of
from bot.discord.roles import channel_credentials
from bot.domain.board import Board
from bot.domain.errors import StoreError
from bot.domain.ids import BoardId
from bot.domain.publication import PublishChange
from bot.services.publishing.engine import PublicationEngine
from bot.services.publishing.state import HeldPublication, PublicationOutcome, PublicationState

_log = structlog.get_logger(__name__)

_MOST_WAIT_S = 60.0
"""The longest wait between two attempts."""


class PublicationThread(BaseModel):
    """The channel that a publication came from, and what was sent so far."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: int
    user: int
    answer: str = ""
    """The interaction whose answer, seen only by the person, gets the outcome as a last resort."""
    thread: int | None = None
    """The id of the private thread, or of the direct messages."""
    direct: bool = False
    """Whether `thread` is direct messages."""
    unseen: bool = False
    """Whether neither is possible, so that the person must request the outcome."""
    live: int | None = None
    """The live message of the check."""
    told: int = 0
    """How many messages of the outcome were sent."""
    announced: bool = False
    """Whether the board was announced, or the question about rejudging was sent."""

    @classmethod
    def of_interaction(cls, interaction: Interaction) -> "PublicationThread":
        """Return the state of a new publication, before anything is sent."""
        channel = channels.home_channel(interaction)
        return cls(channel=channel, user=interaction.user.id, answer=interaction_key(interaction))


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
    may_exist: bool = False
    """Whether an earlier attempt may have created the thread."""

    @classmethod
    def of(
        cls, client: discord.Client, context: DiscordContext, held: HeldPublication
    ) -> "PublicationPoster":
        """Return the poster of a publication, with what was sent so far."""
        thread = PublicationThread.model_validate_json(held.publication.place)
        return cls(client, context, held, thread, may_exist=held.publication.tries > 1)

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
            await self._retry(self._drop_token)

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

    async def _drop_token(self) -> None:
        await self.context.store.interactions.drop_token(self.thread.answer)

    async def _draw(self, state: PublicationState) -> None:
        channel = await self._private_channel()
        if channel is None:
            return
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

    async def _private_channel(self) -> discord.PartialMessageable | None:
        """Return the person's thread, active, or their direct messages; None if there are neither.

        Discord's errors if the thread is lost.
        """
        if self.thread.thread is None and not self.thread.unseen:
            await self._open()
        if self.thread.unseen:
            return None
        channel = None
        if not self.thread.direct:
            channel = await channels.channel_of(self.client, self.thread.channel)
        if channel is not None:
            await self._threads.unarchive(channel.guild, self.thread.thread or 0)
        return self.client.get_partial_messageable(self.thread.thread or 0)

    @property
    def _threads(self) -> GuildThreads:
        return GuildThreads(self.client, self.context)

    async def _open(self) -> None:
        """Create a private thread for the person, or use what remains if that is impossible."""
        channel = await channels.channel_of(self.client, self.thread.channel)
        if channel is None or not channels.has_private_threads(channel):
            await self._fall_back()
            return
        name = f"Check {self.held.publication.id}: {self._name}"
        user, may_exist = self.thread.user, self.may_exist
        self.may_exist = True  # if this attempt fails, the next one searches for its thread
        try:
            thread = await self._threads.of_check(channel, name, user, may_exist=may_exist)
        except discord.HTTPException as error:
            if is_temporary(error):
                raise
            message = "a thread is refused"
            _log.info(
                message, action="room_lost", release=self.held.publication.id, error=repr(error)
            )
            await self._fall_back()
        else:
            await self._record(thread=thread)

    async def _fall_back(self) -> None:
        """Switch to direct messages if there are any, and send again there what was sent so far."""
        found = None
        if not self.thread.direct:
            found = await channels.direct_messages(self.client, self.context, self.thread.user)
        if found is None:
            await self._record(unseen=True, told=0)
        else:
            await self._record(thread=found.id, direct=True, live=None, told=0)

    async def _send_outcome(self, state: PublicationState, outcome: PublicationOutcome) -> None:
        """Send the outcome to the person; what Discord refuses goes elsewhere."""
        drafts = message_drafts(outcome_report(outcome))
        while not self.thread.unseen:
            try:
                await self._send_private(state, drafts)
            except discord.HTTPException as error:
                if is_temporary(error):
                    raise
                await self._fall_back()
            else:
                break
        if self.thread.unseen:
            await self._send_answer(drafts)

    async def _send_private(self, state: PublicationState, drafts: Sequence[MessageDraft]) -> None:
        if self.thread.live is None or not self.thread.told:
            await self._draw(state)
        for number, draft in enumerate(drafts, start=1):
            channel = await self._private_channel()
            if number > self.thread.told and channel is not None:
                nonce = f"{self._nonce}-{number}"
                await channel.send(draft.content, files=as_files(draft.files), nonce=nonce)
                await self._record(told=number)

    async def _send_answer(self, drafts: Sequence[MessageDraft]) -> None:
        """Add the outcome to the answer, each message at most once, while its token is valid."""
        token = (await self.context.store.interactions.answer_of(self.thread.answer)).token
        if token is None:
            return
        answer = webhook_of(self.client, token)
        for count, draft in enumerate(drafts[self.thread.told :], start=self.thread.told + 1):
            await self._record(told=count)
            with suppress(discord.HTTPException, aiohttp.ClientError, OSError):
                await answer.send(draft.content, files=as_files(draft.files), ephemeral=True)

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
        channel = await self._private_channel()
        if channel is not None:
            text, view = await rejudge_question(self.context, board, before)
            shown = discord.utils.MISSING if view is None else view
            await channel.send(text, view=shown, nonce=f"{self._nonce}-news")

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
        if private is not None:
            notice = f"The board is not announced in <#{self.thread.channel}>: {why}."
            await private.send(f"{notice} {closing_line(board.deadline)}", nonce=nonce)
