"""Checks of the tasks that were submitted to the web front end, as its pages show them.

A check is a publication. It is stored before its submitter gets an answer, run by the engine, and
kept for a month.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, PublicationId
from bot.domain.publication import NewPublication, PublicationSummary, PublishRequest
from bot.domain.tasks.grading import HOW_TO_CHOOSE
from bot.domain.tasks.lint import CheckStep, Level
from bot.reports.blocks import Tone
from bot.reports.tasks import step_line
from bot.services.publishing.engine import PublicationEngine
from bot.services.publishing.publish import NO_BOARD, REQUEST
from bot.services.publishing.state import (
    PublicationOutcome,
    PublicationState,
    cancel_publication,
    own_publication,
)
from bot.web.context import FRONT_END, WebContext
from runners.contract.task import Grader

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
    is_competition: bool = False
    has_zip: bool = False
    is_new: bool = True
    """Whether it is of a new board or competition, not of a board's next version."""

    @classmethod
    def of(cls, summary: PublicationSummary) -> "Check":
        """Return the check of a stored publication."""
        state = PublicationState.model_validate_json(summary.state)
        request = REQUEST.validate_json(summary.wish)
        name, has_zip = request.name or "", summary.has_zip
        is_new = request.onto in {None, NO_BOARD}
        return cls(summary.id, name, summary.tries, state, request.competition, has_zip, is_new)

    @property
    def outcome(self) -> PublicationOutcome | None:
        """Return its outcome; None while it runs."""
        return self.state.outcome

    @property
    def can_choose(self) -> bool:
        """Return whether its submitter can choose a grader, and have the zip checked again."""
        return self.has_zip and self.outcome is not None and bool(self.outcome.choose_for)

    @property
    def steps(self) -> tuple[ShownStep, ...]:
        """Return every run of the task's solutions."""
        steps = self.state.steps
        with_gpu = len({each.gpu for each in steps}) > 1
        return tuple(_shown_step(each, with_gpu=with_gpu) for each in steps)

    @property
    def remarks(self) -> tuple[tuple[str, Tone], ...]:
        """Return the lines of its outcome; the passed runs are in `steps`."""
        return () if self.outcome is None else tuple(_outcome_lines(self.outcome))


def _shown_step(step: CheckStep, *, with_gpu: bool) -> ShownStep:
    tone = None
    if step.finding is not None:
        tone = Tone.BAD if step.finding.level is Level.ERROR else Tone.GOOD
    return ShownStep(step_line(step, with_gpu=with_gpu), tone, begun=step.stage is not None)


def _outcome_lines(outcome: PublicationOutcome) -> list[tuple[str, Tone]]:
    head = [(outcome.grading, Tone.PLAIN)] if outcome.grading else []
    if outcome.report is not None:
        lines = [
            (f"{each.file}: {each.message}", Tone.BAD if each.level is Level.ERROR else Tone.PLAIN)
            for each in outcome.report.findings
            if each.level is not Level.INFO
        ]
        advice = "Fix the errors, then submit it again."
        if outcome.report.undecided:
            advice = f"To publish, {HOW_TO_CHOOSE}."
        return [*head, *lines, (f"Nothing was published. {advice}", Tone.BAD)]
    lines = [*head, (outcome.message, Tone.GOOD if outcome.published else Tone.BAD)]
    lines += [(f"Not run on {gpu}: {why}", Tone.QUIET) for gpu, why in outcome.checked if why]
    lines += [(f"Ignored: {words}", Tone.QUIET) for words in outcome.ignored]
    return [*lines, *(line for each in outcome.boards for line in _outcome_lines(each))]


async def submit_task(context: WebContext, request: PublishRequest, data: bytes) -> PublicationId:
    """Store a task to be checked; UserError when the person has too many unfinished checks."""
    await _require_room(context, request.person)
    new = NewPublication(FRONT_END, request.person, data, REQUEST.dump_json(request).decode())
    return await context.store.publications.add(new)


async def _require_room(context: WebContext, person: PersonId) -> None:
    checks = await context.store.publications.summaries_of(FRONT_END, person)
    if sum(each.ended_at is None for each in checks) >= MOST_OPEN:
        message = f"{MOST_OPEN} of your tasks are being checked already; wait until one check ends"
        raise UserError("too-many-checks", message)


async def choose_grader(
    context: WebContext, caller: Viewer, number: int, grader: Grader
) -> PublicationId:
    """Check the zip of the caller's own check again, under this grader for the undecided board."""
    summary = await context.store.publications.summary(FRONT_END, PublicationId(number))
    if summary is None or summary.person != caller.person:
        raise _unknown_check(number)
    check, request = Check.of(summary), REQUEST.validate_json(summary.wish)
    if not check.can_choose or check.outcome is None:
        raise _zip_gone()
    await _require_room(context, caller.person)
    request = replace(request, as_admin=request.as_admin and caller.sees_all)
    if request.competition:
        graders = dict(request.graders) | {check.outcome.choose_for: grader}
        request = replace(request, graders=tuple(graders.items()))
    else:
        request = replace(request, grader=grader)
    stored = REQUEST.dump_json(request).decode()
    again = await context.store.publications.repeat(FRONT_END, summary.id, stored)
    if again is None:
        raise _zip_gone()
    return again


async def kept_upload(
    context: WebContext, caller: Viewer, number: int
) -> tuple[PublishRequest, bytes]:
    """Return the settings and the kept zip of the caller's own check; UserError without one."""
    summary = await context.store.publications.summary(FRONT_END, PublicationId(number))
    if summary is None or summary.person != caller.person:
        raise _unknown_check(number)
    data = await context.store.publications.kept_zip(FRONT_END, summary.id)
    if data is None:
        raise _zip_gone()
    return REQUEST.validate_json(summary.wish), data


def _unknown_check(number: int) -> UserError:
    return UserError("unknown-check", f"you have no check {number}; checks are kept for a month")


def _zip_gone() -> UserError:
    words = "the zip of this check is no longer kept; choose the grader, and upload the zip again"
    return UserError("zip-gone", words)


async def own_check(context: WebContext, viewer: Viewer, number: int) -> Check:
    """Return the viewer's own check, or any for an admin; UserError if there is none."""
    found = await own_publication(context.store, viewer, FRONT_END, PublicationId(number))
    return Check.of(found)


async def cancel_check(context: WebContext, viewer: Viewer, number: int) -> Check:
    """Cancel the viewer's own check, or any as an admin; UserError if it is too late."""
    await cancel_publication(context.store, viewer, FRONT_END, PublicationId(number))
    return await own_check(context, viewer, number)


class StateOnly:
    """The observer for a front end whose pages read the stored state."""

    async def changed(self, state: PublicationState) -> None:
        """Do nothing."""

    async def finished(self, state: PublicationState) -> None:
        """Do nothing."""


def checking(context: WebContext) -> AbstractAsyncContextManager[None]:
    """Check and publish submitted tasks until the block ends."""
    return PublicationEngine(
        context.store,
        context.clock,
        FRONT_END,
        context.lease,
        lambda _: StateOnly(),
        keeps_zips=True,
    ).running()
