"""Proves one task and publishes it: a live message while its solutions run, then the outcome.

Everything is written down as soon as it is done, and each message carries a nonce, so that who
goes on after a kill neither publishes nor tells a thing twice.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
import discord
import structlog

from bot.domain.board import Board
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import BoardId
from bot.domain.release import Release
from bot.domain.task_report import CheckStep
from bot.frontends.discord.announcing import announcement, season
from bot.frontends.discord.answers import as_files
from bot.frontends.discord.buttons import board_buttons
from bot.frontends.discord.door import Door
from bot.frontends.discord.draw import sheets
from bot.frontends.discord.failures import is_passing, words_for
from bot.frontends.discord.publication_thread.state import live_text, published, refused, unsound
from bot.frontends.discord.rooms import (
    channel_of,
    is_lost,
    may_here,
    new_thread,
    own_thread,
    takes_threads,
)
from bot.frontends.discord.viewers import of_room
from bot.frontends.discord.wishes import Outcome, Stand
from bot.reports.blocks import Report, Text
from bot.services.publishing.engine import TakenOverError, release_proven
from bot.services.publishing.pipeline import Released, Releasing, UnsoundTaskError
from bot.services.publishing.publish import Change, PublishRequest
from bot.services.publishing.request import WISH, Wish
from bot.services.rejudge import best_of

EVERY_S = 1.5
"""Between two edits of the live message: a channel takes five in five seconds."""
_PATIENCE_S = 60.0
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Proof:
    """One release in the hands of this process."""

    client: discord.Client
    door: Door
    owner: str
    release: Release
    stand: Stand
    wish: Wish
    steps: dict[tuple[str, str], CheckStep] = field(default_factory=dict)
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, client: discord.Client, door: Door, owner: str, release: Release) -> "Proof":
        """The release as it was left."""
        stand = Stand.model_validate_json(release.place)
        return cls(client, door, owner, release, stand, WISH.validate_json(release.wish))

    async def run(self) -> None:
        """Prove, publish and tell; TakenOverError when another process goes on with it."""
        if self.stand.outcome is None:
            async with self._live():
                outcome = await self._outcome()
            await self._until_it_works(lambda: self._note(outcome=outcome))
        await self._until_it_works(self._tell)
        await self._until_it_works(self._announce)
        await self._until_it_works(self._finish)

    async def _finish(self) -> None:
        await self.door.store.releases.finish(self.release.id, self.owner)

    async def _note(self, **changes: object) -> None:
        self.stand = self.stand.model_copy(update=changes)
        written = self.stand.model_dump_json()
        if not await self.door.store.releases.note(self.release.id, self.owner, written):
            raise TakenOverError

    async def _outcome(self) -> Outcome:
        wait_s = 1.0
        while True:
            try:
                return published(await self._publish(), await self._before())
            except StoreError as error:
                _log.warning("the store is away", action="release_waits", error=str(error))
            except UnsoundTaskError as error:
                return unsound(error)
            except UserError as error:
                return refused(self.wish.name, error.message)
            except TakenOverError:
                raise
            except Exception as error:  # noqa: BLE001 - the outermost frame of a release
                words = f"{words_for(error)} Nothing was published."
                return refused(self.wish.name, words)
            await asyncio.sleep(wait_s)
            wait_s = min(_PATIENCE_S, 2 * wait_s)

    async def _publish(self) -> Released:
        releasing = Releasing(
            self.door.store, self.door.clock, self.door.runners, _unheard, self._watch, self._sound
        )
        begun = self.stand.publishing
        return await release_proven(releasing, self.release, self.wish, begun=begun)

    async def _before(self) -> int:
        """The number of the task version that was the board's when the release was handed in."""
        onto = self.wish.onto
        version = None if onto is None else await self.door.store.boards.version(onto)
        return 0 if version is None else version.number

    async def _sound(self, request: PublishRequest) -> None:
        del request
        await self._note(publishing=True)

    def _watch(self, step: CheckStep) -> None:
        self.steps[step.gpu, step.name] = step
        self.moved.set()

    @asynccontextmanager
    async def _live(self) -> AsyncIterator[None]:
        """Keeps the live message moving; Discord's trouble with it stops nothing."""
        task = asyncio.create_task(self._keep_drawing(), name=f"release-{self.release.id}")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _keep_drawing(self) -> None:
        while True:
            await self._until_it_works(self._draw)
            await asyncio.sleep(EVERY_S)
            await self.moved.wait()

    async def _until_it_works(self, deed: Callable[[], Awaitable[None]]) -> None:
        """Again after a pause while Discord or the store is away; what is refused is let be."""
        wait_s = 1.0
        while True:
            try:
                return await deed()
            except (StoreError, discord.DiscordException, aiohttp.ClientError, OSError) as error:
                passing = isinstance(error, StoreError) or is_passing(error)
                _log.warning("a release is not told", action="release_untold", error=repr(error))
                if not passing:
                    return None
            await asyncio.sleep(wait_s)
            wait_s = min(_PATIENCE_S, 2 * wait_s)

    async def _draw(self) -> None:
        self.moved.clear()
        room = await self._room()
        text = live_text(self.wish.name, list(self.steps.values()), self.release.tries)
        if self.stand.live is None:
            message = await room.send(text, nonce=f"release-{self.release.id}-live")
            await self._note(live=message.id)
            return
        with suppress(discord.NotFound):  # somebody has removed it: their choice
            await room.get_partial_message(self.stand.live).edit(content=text)

    async def _room(self) -> discord.PartialMessageable:
        """A private thread for the person, or direct messages where none can be made."""
        if self.stand.thread is None:
            thread = await self._thread()
            if thread is None:
                await self._move_on()
            else:
                await thread.add_user(discord.Object(self.stand.user))
                await self._note(thread=thread.id)
        return self.client.get_partial_messageable(self.stand.thread or 0)

    async def _move_on(self) -> None:
        """To direct messages, where whatever was told so far is told again."""
        conversation = await self.client.create_dm(discord.Object(self.stand.user))
        await self._note(thread=conversation.id, direct=True, live=None, told=0)

    async def _thread(self) -> discord.Thread | None:
        channel = await channel_of(self.client, self.stand.channel)
        if channel is None or not takes_threads(may_here(channel)):
            return None
        name = f"Check {self.release.id}: {self.wish.name}"
        return await own_thread(self.client, channel, name) or await new_thread(channel, name)

    async def _tell(self) -> None:
        """How it ended, for the person alone, whose thread may be gone by now."""
        try:
            await self._tell_here()
        except discord.HTTPException as error:
            if self.stand.direct or not is_lost(error):
                raise
            await self._move_on()
            await self._tell_here()

    async def _tell_here(self) -> None:
        outcome = self.stand.outcome
        if outcome is None:
            return
        if self.steps or self.stand.live is None:
            await self._draw()
        found = sheets(Report(outcome.title, tuple(Text(*each) for each in outcome.lines)))
        for number, sheet in enumerate(found, start=1):
            if number > self.stand.told:
                room = await self._room()
                nonce = f"release-{self.release.id}-{number}"
                await room.send(sheet.content, files=as_files(sheet.files), nonce=nonce)
                await self._note(told=number)

    async def _announce(self) -> None:
        """Tell the channel of a new board, or ask about an old one's standings, once."""
        outcome = self.stand.outcome
        if outcome is not None and outcome.board is not None and not self.stand.announced:
            await self._announce_board(outcome, outcome.board)
            await self._note(announced=True)

    async def _announce_board(self, outcome: Outcome, number: BoardId) -> None:
        board = await self.door.store.boards.get(number)
        if board is None:
            return  # deleted meanwhile
        match outcome.change:
            case Change.NEW_VERSION:
                await self._ask_to_rejudge(board, outcome.before)
            case Change.CREATED:
                await self._announce_new(board)
            case Change.CONFIGURED | Change.UNCHANGED:
                pass

    async def _ask_to_rejudge(self, board: Board, before: int) -> None:
        versions = await self.door.store.boards.versions(board.id)
        earlier = next((each.id for each in versions if each.number == before), None)
        standing = () if earlier is None else await best_of(self.door.store, board, earlier)
        room = await self._room()
        words, view = "Nobody stood on the board yet.", None
        if standing:
            words = f"Judge everyone's best submission ({len(standing)}) by the new version, too?"
            view = board_buttons(board, before, rejudge=True)
        await room.send(
            f"{season(board.deadline)} {words}",
            view=discord.utils.MISSING if view is None else view,
            nonce=f"release-{self.release.id}-news",
        )

    async def _announce_new(self, board: Board) -> None:
        nonce = f"release-{self.release.id}-news"
        room = await self._room()
        version = await self.door.store.boards.version(board.task_version)
        if version is None:
            return
        if not board.access.admits(of_room(self.client, self.stand.channel)):
            words = f"Not everyone in <#{self.stand.channel}> may see this board, so nobody"
            await room.send(f"{words} was told of it. {season(board.deadline)}", nonce=nonce)
            return
        channel = await channel_of(self.client, self.stand.channel)
        if channel is None or not may_here(channel).send_messages:
            words = f"I cannot write in <#{self.stand.channel}>, so nobody was told of the board."
            await room.send(f"{words} {season(board.deadline)}", nonce=nonce)
            return
        view = board_buttons(board, 1, rejudge=False)
        await channel.send(announcement(board, version.definition), view=view, nonce=nonce)


def _unheard(words: str) -> None:
    """The live message says what is begun."""
