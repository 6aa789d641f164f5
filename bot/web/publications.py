"""The checks of tasks that were submitted to the web front end, as its pages show them."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from bot.domain.tasks.grading import HOW_TO_CHOOSE
from bot.domain.tasks.lint import CheckStep, Level
from bot.reports.blocks import Tone
from bot.reports.tasks import step_line
from bot.services.publishing.engine import PublicationEngine
from bot.services.publishing.own_checks import Check, OwnChecks
from bot.services.publishing.state import PublicationOutcome, PublicationState
from bot.web.context import FRONT_END, WebContext


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One run of a check; `tone` is set once it has ended."""

    words: str
    tone: Tone | None
    begun: bool


def steps_of(check: Check) -> tuple[ShownStep, ...]:
    """Return every run of the task's solutions."""
    steps = check.state.steps
    with_gpu = len({each.gpu for each in steps}) > 1
    return tuple(_shown_step(each, with_gpu=with_gpu) for each in steps)


def remarks_of(check: Check) -> tuple[tuple[str, Tone], ...]:
    """Return the lines of its outcome; the passed runs are in `steps_of`."""
    return () if check.outcome is None else tuple(_outcome_lines(check.outcome))


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


def checks_of(context: WebContext) -> OwnChecks:
    """Return the checks of the people who use the pages and the API."""
    return OwnChecks(context.store, FRONT_END)


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
