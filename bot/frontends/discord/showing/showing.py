"""Keeps every submission of this door shown: hears what moved, draws it, survives restarts.

One process at a time shows a submission, under a lease in the store. What Discord refuses for a
while is tried again; nothing here is ever waited for by the judging.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

import aiohttp
import discord
import structlog

from bot.domain.display import Display
from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId
from bot.frontends.discord.door import DOOR, Door
from bot.frontends.discord.failures import is_passing
from bot.frontends.discord.showing.pace import Pace
from bot.frontends.discord.showing.steps import OthersError, Reached, Show, Steps
from bot.ports import Topic

_log = structlog.get_logger(__name__)

LEASE = timedelta(seconds=30)
BEAT_S = 10.0
"""How often leases are prolonged, and everything held is looked at in case a hint was lost."""
AT_ONCE = 8
"""Submissions that are drawn at the same time."""
PATIENCE_S = 60.0
"""The longest wait between two tries to show the same submission."""


@dataclass(slots=True)
class _Held:
    show: Show
    failures: int = 0
    busy: bool = False


@dataclass(slots=True)
class Showing:
    """What this process shows, and what of it has to be drawn anew."""

    door: Door
    steps: Steps
    owner: str = field(default_factory=lambda: f"discord-{secrets.token_hex(6)}")
    held: dict[SubmissionId, _Held] = field(default_factory=dict)
    due: asyncio.Queue[SubmissionId] = field(default_factory=asyncio.Queue)
    waiting: set[SubmissionId] = field(default_factory=set)

    async def run(self) -> None:
        """Show until cancelled, whatever else happens."""
        while True:
            try:
                await self._run()
            except Exception as error:  # noqa: BLE001 - a bug with one must not end the showing
                _log.error("showing failed", action="incident", exc_info=error)
                await _pause(BEAT_S)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hear(), name="hear")
            group.create_task(self._keep(), name="keep")
            for number in range(AT_ONCE):
                group.create_task(self._draw_what_is_due(), name=f"draw-{number}")

    async def let_go(self) -> None:
        """Leave what is unfinished to the next process at once."""
        with suppress(StoreError):
            await self.door.store.displays.let_go(self.owner)

    async def _hear(self) -> None:
        while True:
            try:
                async with self.door.store.events.subscribe(frozenset({Topic.PROGRESS})) as notices:
                    async for notice in notices:
                        if notice is not None:
                            await self._heard(SubmissionId(int(notice.payload)))
            except StoreError as error:
                _log.warning("the store is away", action="showing_waits", error=str(error))
                await _pause(1.0)

    async def _heard(self, submission: SubmissionId) -> None:
        if submission in self.held:
            self._mark(submission)
        else:
            await self._claim()

    async def _keep(self) -> None:
        while True:
            try:
                await self._claim()
                await self._prolong()
            except StoreError as error:
                _log.warning("the store is away", action="showing_waits", error=str(error))
            await _pause(BEAT_S)

    async def _claim(self) -> None:
        for display in await self.door.store.displays.claim(DOOR, self.owner, LEASE):
            self._take(display)

    def _take(self, display: Display) -> None:
        self.held.setdefault(display.submission, _Held(Show.of(display)))
        self._mark(display.submission)

    async def _prolong(self) -> None:
        kept = set(await self.door.store.displays.keep(self.owner, LEASE))
        for submission in list(self.held):
            if submission in kept:
                self._mark(submission)
            else:
                del self.held[submission]

    def _mark(self, submission: SubmissionId) -> None:
        if submission not in self.waiting:
            self.waiting.add(submission)
            self.due.put_nowait(submission)

    async def _draw_what_is_due(self) -> None:
        while True:
            submission = await self.due.get()
            self.waiting.discard(submission)
            held = self.held.get(submission)
            if held is not None and not held.busy:
                held.busy = True
                try:
                    await self._draw(submission, held)
                finally:
                    held.busy = False

    async def _draw(self, submission: SubmissionId, held: _Held) -> None:
        try:
            reached = await self.steps.forward(held.show, self.owner)
            held.failures = 0
        except OthersError:
            reached = Reached(done=True)
        except (discord.DiscordException, aiohttp.ClientError, OSError, StoreError) as error:
            reached = await self._failed(held, error)
        except Exception as error:  # noqa: BLE001 - a bug with one must not keep the others back
            _log.error("not shown", action="incident", submission=submission, exc_info=error)
            reached = Reached(again_s=PATIENCE_S)
        if reached.done:
            self.held.pop(submission, None)
        elif reached.again_s is not None:
            self._later(submission, reached.again_s)

    async def _failed(self, held: _Held, error: Exception) -> Reached:
        """Again later, unless Discord will never take it: then the store has it for who asks."""
        submission = held.show.submission
        if isinstance(error, StoreError) or is_passing(error):
            held.failures += 1
            _log.warning(
                "not shown yet", action="showing_again", submission=submission, error=repr(error)
            )
            return Reached(again_s=min(PATIENCE_S, 2.0**held.failures))
        _log.error("cannot be shown", action="unshown", submission=submission, exc_info=error)
        with suppress(StoreError):
            written = held.show.place.model_dump_json()
            await self.door.store.displays.finish(submission, self.owner, written)
        return Reached(done=True)

    def _later(self, submission: SubmissionId, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._mark, submission)


async def _pause(seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)


@asynccontextmanager
async def showing(client: discord.Client, door: Door) -> AsyncIterator[Showing]:
    """Shows for as long as the caller stays."""
    shown = Showing(door, Steps(client, door, Pace()))
    task = asyncio.create_task(shown.run(), name="showing")
    try:
        yield shown
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await shown.let_go()
