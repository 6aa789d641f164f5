"""Checks of tasks that came in here: each is proven and published; its page tells how far it is.

A check is stored before anything is said of it, so that a killed process's is begun anew by the
next one; what is told of it stays for a month.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import structlog
from pydantic import BaseModel, ConfigDict

from bot.domain.access import Viewer
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import BoardId, ReleaseId
from bot.domain.release import NewRelease, Release, ReleaseNote
from bot.domain.task_report import CheckStep, Level
from bot.frontends.web.door import DOOR, Door
from bot.reports.blocks import Tone
from bot.reports.task_check import step_line
from bot.services.publishing.engine import Proving, TakenOverError, proving, release_proven
from bot.services.publishing.pipeline import Released, Releasing, UnsoundTaskError
from bot.services.publishing.publish import Change, PublishRequest
from bot.services.publishing.request import WISH, Wish
from runners.contract.runner import RunnerError

NOTE_S = 0.5
"""Between two notes of how far a check is."""
KEEP = timedelta(days=30)
MOST_OPEN = 3
"""Checks of one person at the same time."""
RUNNER = "runner"
"""The code where a runner failed, and not the task."""
_PATIENCE_S = 60.0
_log = structlog.get_logger(__name__)


class Step(BaseModel):
    """One run of a check; `tone` once it has ended."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    words: str
    tone: Tone | None = None
    begun: bool = False


class Outcome(BaseModel):
    """How a check ended; `board` is set where it was published, over version `before`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: str
    lines: tuple[tuple[str, Tone], ...]
    board: BoardId | None = None
    before: int = 0
    change: Change = Change.UNCHANGED
    code: str = ""
    """Why nothing was published, for programs."""
    reason: str = ""
    """The same in words, as the command line says it."""
    version: int = 0
    note: str = ""
    checked: tuple[tuple[str, str], ...] = ()
    """Each GPU type with why the task was not run on it."""


class Stand(BaseModel):
    """How far a check is, as it is kept."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    begun: tuple[str, ...] = ()
    """What is begun, as the command line says it."""
    steps: tuple[Step, ...] = ()
    publishing: bool = False
    """Whether the solutions have passed, and the board may be stored already."""
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A check as its page shows it."""

    id: ReleaseId
    name: str
    tries: int
    stand: Stand

    @classmethod
    def of(cls, note: ReleaseNote) -> "Check":
        """What is told of it."""
        stand = Stand.model_validate_json(note.place)
        return cls(note.id, WISH.validate_json(note.wish).name, note.tries, stand)


async def hand_in(door: Door, wish: Wish, data: bytes) -> ReleaseId:
    """Store what is to be proven; UserError while the person has enough of it under way."""
    told = await door.store.releases.told_to(DOOR, wish.person)
    if sum(each.ended_at is None for each in told) >= MOST_OPEN:
        words = f"{MOST_OPEN} tasks of yours are being checked already; wait for one of them"
        raise UserError("too-many-checks", words)
    place = Stand().model_dump_json()
    new = NewRelease(DOOR, wish.person, data, WISH.dump_json(wish).decode(), place)
    return await door.store.releases.add(new)


async def own_check(door: Door, viewer: Viewer, number: int) -> Check:
    """One's own check, or for an admin anybody's; UserError when there is none."""
    note = await door.store.releases.told(DOOR, ReleaseId(number))
    if note is None or not (viewer.sees_all or note.person == viewer.person):
        raise UserError("unknown-check", f"there is no check {number}, or not any more")
    return Check.of(note)


@asynccontextmanager
async def checking(door: Door) -> AsyncIterator[None]:
    """Proves what comes in, for as long as the caller stays."""

    async def prove(release: Release, owner: str) -> None:
        await _Proof(door, owner, release).run()

    async with proving(Proving(door.store, DOOR, door.lease, prove)):
        yield


@dataclass(slots=True)
class _Proof:
    """One release in the hands of this process."""

    door: Door
    owner: str
    release: Release
    steps: dict[tuple[str, str], CheckStep] = field(default_factory=dict)
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    stand: Stand = field(default_factory=Stand)

    async def run(self) -> None:
        """Prove, publish and tell; TakenOverError when another process goes on with it."""
        self.stand = Stand.model_validate_json(self.release.place)
        wish = WISH.validate_json(self.release.wish)
        telling = asyncio.create_task(self._keep_telling(), name=f"check-{self.release.id}")
        try:
            outcome = await self._outcome(wish)
        finally:
            telling.cancel()
            with suppress(asyncio.CancelledError):
                await telling
        self.stand = self._now().model_copy(update={"outcome": outcome})
        await self._end()

    async def _outcome(self, wish: Wish) -> Outcome:
        wait_s = 1.0
        while True:
            try:
                return _published(await self._publish(wish), await self._before(wish))
            except StoreError as error:
                _log.warning("the store is away", action="release_waits", error=str(error))
            except UnsoundTaskError as error:
                return _unsound(error)
            except UserError as error:
                return _refused(wish.name, error.message, error.code, error.message)
            except RunnerError as error:
                words = f"Our fault, not the task's: {error}. Nothing was published; try again."
                return _refused(wish.name, words, RUNNER, str(error))
            except TakenOverError:
                raise
            except Exception as error:  # noqa: BLE001 - the outermost frame of a check
                words = _bug(error)
                return _refused(wish.name, words, "incident", words)
            await asyncio.sleep(wait_s)
            wait_s = min(_PATIENCE_S, 2 * wait_s)

    async def _publish(self, wish: Wish) -> Released:
        door = self.door
        releasing = Releasing(
            door.store, door.clock, door.runners, self._tell, self._watch, self._sound
        )
        begun = self.stand.publishing
        return await release_proven(releasing, self.release, wish, begun=begun)

    async def _before(self, wish: Wish) -> int:
        """The number of the task version that was the board's when the zip was handed in."""
        version = None if wish.onto is None else await self.door.store.boards.version(wish.onto)
        return 0 if version is None else version.number

    async def _sound(self, request: PublishRequest) -> None:
        del request
        self.stand = self.stand.model_copy(update={"publishing": True})
        await self._note()

    def _tell(self, words: str) -> None:
        self.stand = self.stand.model_copy(update={"begun": (words,)})

    def _watch(self, step: CheckStep) -> None:
        self.steps[step.gpu, step.name] = step
        self.moved.set()

    async def _keep_telling(self) -> None:
        while True:
            await self.moved.wait()
            self.moved.clear()
            with suppress(StoreError, TakenOverError):
                await self._note()
            await asyncio.sleep(NOTE_S)

    def _now(self) -> Stand:
        with_gpu = len({each.gpu for each in self.steps.values()}) > 1
        steps = tuple(map(partial(_step, with_gpu=with_gpu), self.steps.values()))
        return self.stand.model_copy(update={"steps": steps or self.stand.steps})

    async def _note(self) -> None:
        written = self._now().model_dump_json()
        if not await self.door.store.releases.note(self.release.id, self.owner, written):
            raise TakenOverError

    async def _end(self) -> None:
        releases = self.door.store.releases
        wait_s = 1.0
        while True:
            try:
                if not await releases.end(
                    self.release.id, self.owner, self.stand.model_dump_json()
                ):
                    raise TakenOverError
                await releases.forget(self.door.clock.now() - KEEP)
            except StoreError as error:
                _log.warning("the store is away", action="release_waits", error=str(error))
                await asyncio.sleep(wait_s)
                wait_s = min(_PATIENCE_S, 2 * wait_s)
            else:
                return


def _step(step: CheckStep, *, with_gpu: bool) -> Step:
    tone = None
    if step.finding is not None:
        tone = Tone.BAD if step.finding.level is Level.ERROR else Tone.GOOD
    return Step(words=step_line(step, with_gpu=with_gpu), tone=tone, begun=step.stage is not None)


def _published(released: Released, before: int) -> Outcome:
    published = released.published
    board = published.board
    lines = [(published.told, Tone.GOOD)] + [
        (f"Not run on {report.gpu}: {report.obstacle}", Tone.QUIET)
        for report in released.reports
        if not report.dry_run
    ]
    return Outcome(
        title=f"Leaderboard {board.name}",
        lines=tuple(lines),
        board=board.id,
        before=before,
        change=published.change,
        version=published.version,
        note=published.note,
        checked=tuple((report.gpu, report.obstacle) for report in released.reports),
    )


def _unsound(error: UnsoundTaskError) -> Outcome:
    """What is wrong, and what could be better; what went well stands among the steps."""
    report = error.report
    lines = [
        (f"{each.file}: {each.message}", Tone.BAD if each.level is Level.ERROR else Tone.PLAIN)
        for each in report.findings
        if each.level is not Level.INFO
    ]
    lines.append(("Nothing was published. Mend it, and hand it in again.", Tone.BAD))
    return Outcome(
        title=f"{report.task} on {report.gpu}: to be mended",
        lines=tuple(lines),
        code=error.code,
        reason=error.message,
    )


def _refused(name: str, words: str, code: str, reason: str) -> Outcome:
    lines = ((words, Tone.BAD),)
    return Outcome(title=f"Leaderboard {name}", lines=lines, code=code, reason=reason)


def _bug(error: Exception) -> str:
    incident = secrets.token_hex(4)
    _log.error("a check failed", action="incident", incident=incident, exc_info=error)
    return f"This is a bug in Podium; please report incident {incident}. Nothing was published."
