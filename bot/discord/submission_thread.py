"""Shows every submission of this front end, follows its changes, and survives restarts.

One process at a time shows a submission, under a lease in the store. Temporary errors of Discord
are retried; judging never waits for anything here.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
import discord
import structlog
from pydantic import ValidationError

from bot.discord.context import DOOR, DiscordContext
from bot.discord.responses import is_passing
from bot.discord.submission_steps import (
    DisplayedSubmission,
    DisplayProgress,
    DisplayTakenOverError,
    ThreadUpdater,
)
from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId
from bot.domain.job import Topic
from bot.domain.submission import Display

_log = structlog.get_logger(__name__)

QUEUE_S = 2.0
"""The minimum time between two updates of queue positions."""
_LOOK_S = 0.02
"""Seconds added for each waiting submission, so that a long queue does not load the store."""
CLAIM_S = 0.2
"""Seconds between two polls for new submissions, however many notices arrive."""
AT_ONCE = 8
"""The most submissions that are drawn at the same time."""
_TICK_S = 0.01
"""How early a timer may fire."""
LONGEST_S = 20.0
"""The longest wait between two attempts, so that displays resume soon after an outage."""
OUT_AFTER = 3
"""After this many failures in a row, of any submissions, Discord is considered unavailable."""


@dataclass(slots=True)
class OutageBackoff:
    """Counts failures in a row; during an outage, only one submission at a time tries again."""

    failures: int = 0
    next_try: float = 0.0

    @property
    def is_out(self) -> bool:
        """Return whether Discord is considered unavailable."""
        return self.failures >= OUT_AFTER

    def wait_s(self) -> float:
        """Return the seconds until the next attempt; 0 permits one, and the next must wait."""
        if not self.is_out:
            return 0.0
        now = time.monotonic()
        if now < self.next_try:
            return self.next_try - now
        self.next_try = now + pause_s(self.failures)
        return 0.0

    def failed(self) -> None:
        """Count one more failure in a row."""
        self.failures += 1

    def succeeded(self) -> bool:
        """Count a success; return whether it ends an outage."""
        was_out, self.failures = self.is_out, 0
        return was_out


def pause_s(failures: int) -> float:
    """Return the seconds to wait after failures in a row: 2, 4, 8, 16, then the longest."""
    return min(LONGEST_S, 2.0 ** min(failures, 10))


@dataclass(slots=True)
class _Held:
    show: DisplayedSubmission
    failures: int = 0
    busy: bool = False
    moved: bool = False
    """Whether it changed while it was being drawn."""
    not_before: float = 0.0
    """The earliest time of the next attempt, by the event loop's clock, whatever notices arrive."""


@dataclass(slots=True)
class Showing:
    """What this process shows, and which of it must be drawn again."""

    door: DiscordContext
    steps: ThreadUpdater
    owner: str = field(default_factory=lambda: f"discord-{secrets.token_hex(6)}")
    held: dict[SubmissionId, _Held] = field(default_factory=dict)
    due: asyncio.Queue[SubmissionId] = field(default_factory=asyncio.Queue)
    waiting: set[SubmissionId] = field(default_factory=set)
    unknown: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a submission changed that this process does not hold."""
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when any submission changed."""
    patience: OutageBackoff = field(default_factory=OutageBackoff)

    async def run(self) -> None:
        """Show until cancelled; errors do not end it."""
        while True:
            try:
                await self._run()
            except Exception as error:  # noqa: BLE001 - a bug with one must not end the loop
                _log.error("showing failed", action="incident", exc_info=error)
                await asyncio.sleep(self.door.beat_s)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hear(), name="hear")
            group.create_task(self._keep(), name="keep")
            group.create_task(self._claim_what_is_new(), name="claim")
            group.create_task(self._follow_the_queue(), name="queue")
            for number in range(AT_ONCE):
                group.create_task(self._draw_what_is_due(), name=f"draw-{number}")

    async def let_go(self) -> None:
        """Release what is unfinished, so that the next process can claim it at once."""
        with suppress(StoreError):
            await self.door.store.displays.let_go(self.owner)

    async def _hear(self) -> None:
        while True:
            try:
                async with self.door.store.events.subscribe(frozenset({Topic.PROGRESS})) as notices:
                    async for notice in notices:
                        if notice is not None:
                            self._heard(SubmissionId(int(notice.payload)))
            except StoreError as error:
                _log.warning("the store is away", action="showing_waits", error=str(error))
                await asyncio.sleep(1.0)

    def _heard(self, submission: SubmissionId) -> None:
        self.moved.set()
        if submission in self.held:
            self._mark(submission)
        else:
            self.unknown.set()

    async def _claim_what_is_new(self) -> None:
        while True:
            await self.unknown.wait()
            self.unknown.clear()
            await self.claim()
            await asyncio.sleep(CLAIM_S)

    async def _follow_the_queue(self) -> None:
        """Redraw waiting submissions: their positions change without a notice to them."""
        while True:
            await self.moved.wait()
            self.moved.clear()
            waiting = [number for number, held in self.held.items() if held.show.queued]
            for submission in waiting:
                self._mark(submission)
            await asyncio.sleep(max(QUEUE_S, _LOOK_S * len(waiting)))

    async def _keep(self) -> None:
        """Renew the leases, and check everything held in case a notice was lost."""
        while True:
            await self.claim()
            await self._prolong()
            await asyncio.sleep(self.door.beat_s)

    async def claim(self) -> None:
        """Claim what is new, and what no process holds any more."""
        try:
            displays = self.door.store.displays
            for display in await displays.claim(DOOR, self.owner, self.door.lease):
                self._take(display)
        except StoreError as error:
            _log.warning("the store is away", action="showing_waits", error=str(error))

    def _take(self, display: Display) -> None:
        submission = display.submission
        held = self.held.get(submission)
        if held is None or not held.busy:  # the stored state of one held before may be out of date
            try:
                self.held[submission] = _Held(DisplayedSubmission.of(display))
            except ValidationError as error:
                _log.error(
                    "unreadable place", action="unshown", submission=submission, exc_info=error
                )
                return
        self._mark(submission)

    async def _prolong(self) -> None:
        held = list(self.held)  # one claimed while the store answers is not in its answer
        try:
            kept = set(await self.door.store.displays.keep(self.owner, self.door.lease))
        except StoreError as error:
            _log.warning("the store is away", action="showing_waits", error=str(error))
            return
        for submission in held:
            if submission in kept:
                self._mark(submission)
            else:
                self._drop(submission)

    def _mark(self, submission: SubmissionId) -> None:
        """Draw it as soon as possible, unless it has to wait after a failure."""
        held = self.held.get(submission)
        if held is None or held.not_before > asyncio.get_running_loop().time() + _TICK_S:
            return
        if held.busy:
            held.moved = True
        elif submission not in self.waiting:
            self.waiting.add(submission)
            self.due.put_nowait(submission)

    def _later(self, submission: SubmissionId, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._mark, submission)

    def _drop(self, submission: SubmissionId) -> None:
        held = self.held.pop(submission, None)
        if held is not None and held.show.place.live is not None:
            self.steps.pace.forget(held.show.place.live)

    async def _draw_what_is_due(self) -> None:
        while True:
            submission = await self.due.get()
            self.waiting.discard(submission)
            held = self.held.get(submission)
            if held is None:
                continue
            wait_s = self.patience.wait_s()
            if wait_s > 0:
                self._later(submission, wait_s)
                continue
            held.busy, held.moved = True, False
            try:
                reached = await self._drawn(held)
            finally:
                held.busy = False
            self._go_on(submission, held, reached)

    def _go_on(self, submission: SubmissionId, held: _Held, reached: DisplayProgress) -> None:
        if reached.done:
            self._drop(submission)
        elif reached.again_s is not None:
            self._later(submission, reached.again_s)
        elif held.moved:
            self._mark(submission)

    async def _drawn(self, held: _Held) -> DisplayProgress:
        try:
            reached = await self.steps.forward(held.show, self.owner)
        except DisplayTakenOverError:
            return DisplayProgress(done=True)
        except (discord.DiscordException, aiohttp.ClientError, OSError, StoreError) as error:
            return await self._failed(held, error)
        except Exception as error:  # noqa: BLE001 - a bug with one must not block the others
            submission = held.show.submission
            _log.error("not shown", action="incident", submission=submission, exc_info=error)
            return self._put_off(held, LONGEST_S)
        held.failures = 0
        if self.patience.succeeded():
            self._wake_all()
        return reached

    def _wake_all(self) -> None:
        _log.info("shown again", action="showing_again", submissions=len(self.held))
        for submission, held in self.held.items():
            held.not_before = 0.0
            self._mark(submission)

    async def _failed(self, held: _Held, error: Exception) -> DisplayProgress:
        """Retry later, or give up if Discord always refuses; the report can still be requested."""
        submission = held.show.submission
        if isinstance(error, discord.RateLimited):
            return self._put_off(held, error.retry_after)
        if isinstance(error, StoreError) or is_passing(error):
            held.failures += 1
            held.show.doubtful = True
            self.patience.failed()
            _log.warning(
                "not shown yet", action="not_shown_yet", submission=submission, error=repr(error)
            )
            return self._put_off(held, pause_s(held.failures))
        _log.error("cannot be shown", action="unshown", submission=submission, exc_info=error)
        with suppress(StoreError):
            written = held.show.place.model_dump_json()
            await self.door.store.displays.finish(submission, self.owner, written)
        return DisplayProgress(done=True)

    def _put_off(self, held: _Held, seconds: float) -> DisplayProgress:
        held.not_before = asyncio.get_running_loop().time() + seconds
        return DisplayProgress(again_s=seconds)


@asynccontextmanager
async def showing(client: discord.Client, door: DiscordContext) -> AsyncIterator[Showing]:
    """Show submissions until the block ends."""
    shown = Showing(door, ThreadUpdater(client, door))
    task = asyncio.create_task(shown.run(), name="showing")
    try:
        yield shown
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await shown.let_go()
