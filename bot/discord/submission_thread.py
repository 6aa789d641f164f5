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

from bot.discord import submission_steps as steps
from bot.discord.context import FRONT_END, DiscordContext
from bot.discord.displays import DisplayedSubmission, DisplayProgress, DisplayTakenOverError, Phase
from bot.discord.responses import is_temporary
from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId
from bot.domain.job import Topic
from bot.domain.submission import Display

_log = structlog.get_logger(__name__)

QUEUE_S = 2.0
"""The minimum time between two updates of queue positions."""
_REDRAW_S = 0.02
"""Seconds added for each waiting submission, so that a long queue does not load the store."""
CLAIM_S = 0.2
"""Seconds between two polls for new submissions, however many notices arrive."""
AT_ONCE = {Phase.ANSWER: 8, Phase.THREAD: 12, Phase.LINE: 8}
"""The most displays that advance at the same time, by phase."""
_TICK_S = 0.01
"""Seconds by which a timer of the event loop may fire early."""
LONGEST_WAIT_S = 20.0
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
        """Return the seconds until the next attempt.

        A result of 0 permits one attempt. During an outage, the next caller then has to wait.
        """
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
    return min(LONGEST_WAIT_S, 2.0 ** min(failures, 10))


@dataclass(slots=True)
class _Held:
    shown: DisplayedSubmission
    failures: int = 0
    busy: bool = False
    changed: bool = False
    """Whether it changed while it was being drawn."""
    not_before: float = 0.0
    """The earliest time of the next attempt, by the event loop's clock, whatever notices arrive."""


@dataclass(slots=True)
class DisplayLoop:
    """The submissions that this process shows, and which of them must be drawn again."""

    context: DiscordContext
    updater: steps.ThreadUpdater
    owner: str = field(default_factory=lambda: f"discord-{secrets.token_hex(6)}")
    held: dict[SubmissionId, _Held] = field(default_factory=dict)
    due: dict[Phase, asyncio.Queue[SubmissionId]] = field(
        default_factory=lambda: {phase: asyncio.Queue() for phase in Phase}
    )
    waiting: set[SubmissionId] = field(default_factory=set)
    """The submissions in `due`, each of which is queued there once."""
    unknown: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a submission changed that this process does not hold."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when any submission changed."""
    backoff: OutageBackoff = field(default_factory=OutageBackoff)

    async def run(self) -> None:
        """Show until cancelled; errors do not end it."""
        while True:
            try:
                await self._run()
            except Exception as error:  # noqa: BLE001 - a bug with one must not end the loop
                _log.error("showing failed", action="incident", exc_info=error)
                await asyncio.sleep(self.context.heartbeat_s)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._receive_notices(), name="notices")
            group.create_task(self._renew_regularly(), name="leases")
            group.create_task(self._claim_new(), name="claim")
            group.create_task(self._redraw_queued(), name="queue")
            for phase, count in AT_ONCE.items():
                for number in range(count):
                    group.create_task(self._draw_due(phase), name=f"draw-{phase.name}-{number}")

    async def release(self) -> None:
        """Release what is unfinished, so that the next process can claim it at once."""
        with suppress(StoreError):
            await self.context.store.displays.release_all(self.owner)

    async def _receive_notices(self) -> None:
        while True:
            try:
                async with self.context.store.events.subscribe(
                    frozenset({Topic.PROGRESS})
                ) as notices:
                    async for notice in notices:
                        if notice is not None:
                            self._handle_change(SubmissionId(int(notice.payload)))
            except StoreError as error:
                _log.warning("the store is unavailable", action="showing_waits", error=str(error))
                await asyncio.sleep(1.0)

    def _handle_change(self, submission: SubmissionId) -> None:
        self.changed.set()
        if submission in self.held:
            self._mark(submission)
        else:
            self.unknown.set()

    async def _claim_new(self) -> None:
        while True:
            await self.unknown.wait()
            self.unknown.clear()
            await self.claim()
            await asyncio.sleep(CLAIM_S)

    async def _redraw_queued(self) -> None:
        """Redraw waiting submissions: their positions change without a notice to them."""
        while True:
            await self.changed.wait()
            self.changed.clear()
            waiting = [number for number, held in self.held.items() if held.shown.queued]
            for submission in waiting:
                self._mark(submission)
            await asyncio.sleep(max(QUEUE_S, _REDRAW_S * len(waiting)))

    async def _renew_regularly(self) -> None:
        """Renew the leases, and check everything held in case a notice was lost."""
        while True:
            await self.claim()
            await self._renew_leases()
            await asyncio.sleep(self.context.heartbeat_s)

    async def claim(self) -> None:
        """Claim what is new, and what no process holds any more."""
        try:
            displays = self.context.store.displays
            for display in await displays.claim(FRONT_END, self.owner, self.context.lease):
                self._hold(display)
        except StoreError as error:
            _log.warning("the store is unavailable", action="showing_waits", error=str(error))

    def _hold(self, display: Display) -> None:
        submission = display.submission
        held = self.held.get(submission)
        if held is None or not held.busy:  # while it is drawn, the store's state is older
            try:
                self.held[submission] = _Held(DisplayedSubmission.of(display))
            except ValidationError as error:
                _log.error(
                    "unreadable display", action="unshown", submission=submission, exc_info=error
                )
                return
        self._mark(submission)

    async def _renew_leases(self) -> None:
        held = list(self.held)  # before the request: its answer lacks what is claimed meanwhile
        try:
            renewed = set(await self.context.store.displays.renew(self.owner, self.context.lease))
        except StoreError as error:
            _log.warning("the store is unavailable", action="showing_waits", error=str(error))
            return
        for submission in held:
            if submission in renewed:
                self._mark(submission)
            else:
                self._drop(submission)

    def _mark(self, submission: SubmissionId) -> None:
        """Draw a submission as soon as possible, unless it has to wait after a failure."""
        held = self.held.get(submission)
        if held is None or held.not_before > asyncio.get_running_loop().time() + _TICK_S:
            return
        if held.busy:
            held.changed = True
        elif submission not in self.waiting:
            self.waiting.add(submission)
            self.due[held.shown.phase].put_nowait(submission)

    def _mark_later(self, submission: SubmissionId, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._mark, submission)

    def _drop(self, submission: SubmissionId) -> None:
        held = self.held.pop(submission, None)
        if held is not None:
            for message in (held.shown.state.live, held.shown.state.answer):
                self.updater.edits.remove(message)

    async def _draw_due(self, phase: Phase) -> None:
        while True:
            submission = await self.due[phase].get()
            self.waiting.discard(submission)
            held = self.held.get(submission)
            if held is None:
                continue
            wait_s = self.backoff.wait_s()
            if wait_s > 0:
                self._mark_later(submission, wait_s)
                continue
            held.busy, held.changed = True, False
            try:
                progress = await self._draw(held)
            finally:
                held.busy = False
            self._schedule_next(submission, held, progress)

    def _schedule_next(
        self, submission: SubmissionId, held: _Held, progress: DisplayProgress
    ) -> None:
        if progress.done:
            self._drop(submission)
        elif progress.again_s is not None:
            if progress.waits:
                self._postpone(held, progress.again_s)
            self._mark_later(submission, progress.again_s)
        elif held.changed:
            self._mark(submission)

    async def _draw(self, held: _Held) -> DisplayProgress:
        try:
            progress = await self.updater.advance(held.shown, self.owner)
        except DisplayTakenOverError:
            return DisplayProgress(done=True)
        except (discord.DiscordException, aiohttp.ClientError, OSError, StoreError) as error:
            return await self._handle_failure(held, error)
        except Exception as error:  # noqa: BLE001 - a bug with one must not block the others
            submission = held.shown.submission
            _log.error("not shown", action="incident", submission=submission, exc_info=error)
            return self._postpone(held, LONGEST_WAIT_S)
        held.failures = 0
        if progress.requested and self.backoff.succeeded():
            self._wake_all()
        return progress

    def _wake_all(self) -> None:
        _log.info("shown again", action="showing_again", submissions=len(self.held))
        for submission, held in self.held.items():
            held.not_before = 0.0
            self._mark(submission)

    async def _handle_failure(self, held: _Held, error: Exception) -> DisplayProgress:
        """Retry a temporary error later; after any other, skip the step."""
        submission = held.shown.submission
        if isinstance(error, discord.RateLimited):
            return self._postpone(held, error.retry_after)
        if isinstance(error, StoreError) or is_temporary(error):
            held.failures += 1
            held.shown.doubtful = True
            self.backoff.failed()
            _log.warning(
                "not shown yet", action="not_shown_yet", submission=submission, error=repr(error)
            )
            return self._postpone(held, pause_s(held.failures))
        _log.error("cannot be shown", action="unshown", submission=submission, exc_info=error)
        try:
            await self.updater.give_up(held.shown, self.owner)
        except DisplayTakenOverError:
            return DisplayProgress(done=True)
        except StoreError:
            pass
        return self._postpone(held, LONGEST_WAIT_S)

    def _postpone(self, held: _Held, seconds: float) -> DisplayProgress:
        held.not_before = asyncio.get_running_loop().time() + seconds
        return DisplayProgress(again_s=seconds)


@asynccontextmanager
async def run_displays(
    client: discord.Client, context: DiscordContext
) -> AsyncIterator[DisplayLoop]:
    """Show submissions until the block ends."""
    loop = DisplayLoop(context, steps.ThreadUpdater(client, context))
    task = asyncio.create_task(loop.run(), name="displays")
    try:
        yield loop
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await loop.release()
