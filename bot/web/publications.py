"""Checks of tasks that were submitted here, as their pages show them.

A check is a publication: stored before it is confirmed, and run by the engine. Its state stays
readable for a month.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PublicationId
from bot.domain.publication import NewPublication, PublicationSummary, PublishRequest
from bot.domain.tasks.lint import CheckStep, Level
from bot.reports.blocks import Tone
from bot.reports.tasks import step_line
from bot.services.publishing.engine import PublicationEngine
from bot.services.publishing.publish import REQUEST
from bot.services.publishing.state import PublicationOutcome, PublicationState
from bot.web.context import DOOR, WebContext

KEEP = timedelta(days=30)
MOST_OPEN = 3
"""The most unfinished checks of one person."""


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One run of a check; `tone` is set once it has ended."""

    words: str
    tone: Tone | None
    begun: bool


@dataclass(frozen=True, slots=True)
class Check:
    """A check as its page shows it."""

    id: PublicationId
    name: str
    tries: int
    state: PublicationState

    @classmethod
    def of(cls, note: PublicationSummary) -> "Check":
        """Return the check that is stored."""
        state = PublicationState.model_validate_json(note.state)
        return cls(note.id, REQUEST.validate_json(note.wish).name or "", note.tries, state)

    @property
    def outcome(self) -> PublicationOutcome | None:
        """Return its outcome; None while it runs."""
        return self.state.outcome

    @property
    def steps(self) -> tuple[ShownStep, ...]:
        """Return every run of the task's solutions."""
        steps = self.state.steps
        with_gpu = len({each.gpu for each in steps}) > 1
        return tuple(_shown(each, with_gpu=with_gpu) for each in steps)

    @property
    def remarks(self) -> tuple[tuple[str, Tone], ...]:
        """Return the lines of its outcome; passed runs are among the steps."""
        return () if self.outcome is None else tuple(_remarks(self.outcome))


def _shown(step: CheckStep, *, with_gpu: bool) -> ShownStep:
    tone = None
    if step.finding is not None:
        tone = Tone.BAD if step.finding.level is Level.ERROR else Tone.GOOD
    return ShownStep(step_line(step, with_gpu=with_gpu), tone, begun=step.stage is not None)


def _remarks(outcome: PublicationOutcome) -> list[tuple[str, Tone]]:
    if outcome.report is not None:
        lines = [
            (f"{each.file}: {each.message}", Tone.BAD if each.level is Level.ERROR else Tone.PLAIN)
            for each in outcome.report.findings
            if each.level is not Level.INFO
        ]
        return [*lines, ("Nothing was published. Mend it, and hand it in again.", Tone.BAD)]
    obstacles = [(f"Not run on {gpu}: {why}", Tone.QUIET) for gpu, why in outcome.checked if why]
    return [(outcome.message, Tone.BAD if outcome.board is None else Tone.GOOD), *obstacles]


async def hand_in(door: WebContext, request: PublishRequest, data: bytes) -> PublicationId:
    """Store a task to be checked; UserError when the person has too many unfinished checks."""
    shown = await door.store.publications.summaries_of(DOOR, request.person)
    if sum(each.ended_at is None for each in shown) >= MOST_OPEN:
        words = f"{MOST_OPEN} tasks of yours are being checked already; wait for one of them"
        raise UserError("too-many-checks", words)
    new = NewPublication(DOOR, request.person, data, REQUEST.dump_json(request).decode())
    return await door.store.publications.add(new)


async def own_check(door: WebContext, viewer: Viewer, number: int) -> Check:
    """Return one's own check, or any for an admin; UserError when there is none."""
    note = await door.store.publications.summary(DOOR, PublicationId(number))
    if note is None or not (viewer.sees_all or note.person == viewer.person):
        raise UserError("unknown-check", f"there is no check {number}, or not any more")
    return Check.of(note)


class StateOnly:
    """The observer for a front end whose pages read the stored state."""

    async def changed(self, state: PublicationState) -> None:
        """Do nothing."""

    async def finished(self, state: PublicationState) -> None:
        """Do nothing."""


def checking(door: WebContext) -> AbstractAsyncContextManager[None]:
    """Check and publish submitted tasks until the block ends."""
    return PublicationEngine(
        door.store, door.clock, door.runners, DOOR, door.lease, lambda _: StateOnly(), keep=KEEP
    ).running()
