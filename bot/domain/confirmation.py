"""Confirmations: before a run takes one of the first places, it is compared with the holder.

The judge times both on one card, in alternating rounds, and measures the ratio of their times. The
score of the new run is held back until then. After that, its time is the holder's time multiplied
by the ratio. Which of the two is ahead is decided only by the interval of the ratio.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from math import isfinite

from bot.domain.ids import ConfirmationId, FinalId, PersonId, SubmissionId, TaskVersionId
from bot.domain.job import PRIORITIES
from bot.domain.scoring import (
    Entrant,
    Outcome,
    PairRatio,
    Score,
    ScoreValue,
    by_speed,
    case_times,
    combine,
    rank_entrants,
)
from runners.contract.comparison import Ratio
from runners.contract.evaluation import Evaluation
from runners.contract.task import Grader, Mode, TaskDefinition, TaskFormat
from runners.contract.verdict import Verdict

PLACES = 3
"""How many places are confirmed."""
MOST_PAIRS = 3
"""The most holders with whom one run is compared."""
MOST_ATTEMPTS = 3
"""The most runs that compare the same two."""
MOST_FAILURES = 2
"""A holder or a final's entry that fails this often when compared with itself is disqualified."""
LEADS_MOST = 0.02
"""The fraction by which a comparison alone may put a run ahead of the fastest other one."""
PRIORITY = PRIORITIES[Mode.RANKED]
"""Confirmations take fair turns with everybody's ranked jobs."""


class ConfirmationState(StrEnum):
    """How a comparison ended, for the run that had to be confirmed."""

    PENDING = "pending"
    """It waits, or the two are being compared."""
    CONFIRMED = "confirmed"
    """It was faster than the holder."""
    TIED = "tied"
    """The interval of the ratio contains 1: both share the place."""
    SLOWER = "slower"
    """It was slower than the holder, who keeps the place."""
    REFUSED = "refused"
    """It failed, so it is not ranked."""
    UNDECIDED = "undecided"
    """The comparison failed each time: both share the place."""
    DROPPED = "dropped"
    """The comparison was not needed any more, or one of the two is not ranked any more."""


_STATES = {
    Outcome.FASTER: ConfirmationState.CONFIRMED,
    Outcome.TIED: ConfirmationState.TIED,
    Outcome.SLOWER: ConfirmationState.SLOWER,
}


def state_of(ratio: PairRatio) -> ConfirmationState:
    """Return how a comparison with this ratio ends."""
    return _STATES[ratio.outcome]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A stored comparison of a submission with a rival; the names are those of the submitters."""

    id: ConfirmationId
    submission: SubmissionId
    person: PersonId
    person_name: str
    task_version: TaskVersionId
    gpu: str
    place: int
    """The place that the run would take."""
    state: ConfirmationState
    created_at: datetime
    decided_at: datetime | None = None
    final: FinalId | None = None
    held: ScoreValue | None = None
    """The score that is held back."""
    submitted_at: datetime | None = None
    rival: SubmissionId | None = None
    """The holder; None until the comparison starts."""
    rival_name: str = ""
    run: SubmissionId | None = None
    """The system's submission that compares them now, or did so last."""
    alone: SubmissionId | None = None
    """Which of the two `run` compares with itself, after a failure; None: it compares both."""
    attempts: int = 0
    failures: int = 0
    ratio: PairRatio | None = None
    reason: str = ""

    @property
    def is_pending(self) -> bool:
        """Whether it is not decided yet."""
        return self.state is ConfirmationState.PENDING

    @property
    def without_quotes(self) -> "Confirmation":
        """The confirmation without words that could quote the submission's hidden source."""
        if self.state is not ConfirmationState.REFUSED:
            return self
        return replace(self, reason="it failed in its comparison")


@dataclass(frozen=True, slots=True)
class LostPlace:
    """One of the first places, which another run took or now shares, after a comparison."""

    place: int
    submission: SubmissionId
    person_name: str
    shared: bool
    ratio: PairRatio | None
    """The time of the other run divided by that of this one."""

    @classmethod
    def by(cls, other: Confirmation) -> "LostPlace":
        """Return the place that the other run was confirmed to take, or to share."""
        shared = other.state is ConfirmationState.TIED
        return cls(other.place, other.submission, other.person_name, shared, other.ratio)


def can_confirm(task: TaskDefinition) -> bool:
    """Return whether the judge itself times the task's submissions, so that it can compare two."""
    return task.grader is not Grader.POPCORN and task.format is not TaskFormat.IO_CONTRACT


def in_turn(waiting: Sequence[Confirmation]) -> list[Confirmation]:
    """Return the waiting confirmations in the order in which they are made.

    People with fewer of them come first, so they do not wait for all runs of another person. Of one
    person's runs the fastest comes first, because then the others may not need to be compared.
    """
    own: dict[PersonId, list[Confirmation]] = {}
    for each in waiting:
        own.setdefault(each.person, []).append(each)
    people = sorted(own.values(), key=lambda each: (len(each), each[0].id))
    return [one for each in people for one in sorted(each, key=_held_ns)]


def _held_ns(waiting: Confirmation) -> float:
    return 0.0 if waiting.held is None else waiting.held.upper_ns


@dataclass(frozen=True, slots=True)
class Contest:
    """A place that a run would take, and the score of its present holder."""

    place: int
    holder: Score


def contest(
    new: Score,
    others: Sequence[Entrant],
    earlier: Score | None,
    compared: Container[SubmissionId] = (),
) -> Contest | None:
    """Return which of the first places the run would take from another person; None if none.

    `others` are the other people of the leaderboard, `earlier` is the person's best score so far.
    The holder is the first person whom the run passes or draws level with, or who would draw level
    with it because only the person's earlier run was compared. The first run on a board displaces
    no one, and a place without a holder needs no comparison. The run was already compared with the
    submissions in `compared`. It is not compared with people who were behind one of these, but it
    is with people who shared the place of one of these and would lose it.
    """
    if earlier is not None and by_speed(earlier) < by_speed(new):
        return None
    after = rank_entrants([*others, Entrant(new, 1)])
    before = rank_entrants([*others, *([] if earlier is None else [Entrant(earlier, 1)])])
    ranks = {each.score.person: each.rank for each in before}
    place = next(each.rank for each in after if each.score.person == new.person)
    own = ranks.get(new.person)
    met: int | None = None
    for each in after if place <= PLACES else ():
        rank = ranks.get(each.score.person, 0)
        if each.score.person == new.person or _behind(each.rank, place) == _behind(rank, own):
            continue
        if each.score.submission in compared:
            met = rank if met is None else min(met, rank)
        elif met is None or (rank <= met and each.rank > place):
            return Contest(place, each.score)
    return None


def with_former_runs(
    entered: Iterable[Entrant], met: Mapping[SubmissionId, Sequence[tuple[SubmissionId, PairRatio]]]
) -> tuple[Entrant, ...]:
    """Add the comparisons of runs that are withdrawn, or no longer the best of their person.

    Otherwise a person who improves or withdraws a run could change the order of two others.
    """
    entered = tuple(entered)
    best = {each.best.submission for each in entered}
    added: dict[SubmissionId, list[tuple[SubmissionId, PairRatio]]] = {}
    for former in met.keys() - best:
        for rival, ratio in met[former]:
            added.setdefault(rival, []).append((former, ratio.inverse))
    return tuple(
        replace(each, best=replace(each.best, met=(*each.best.met, *found)))
        if (found := added.get(each.best.submission))
        else each
        for each in entered
    )


def _behind(other: int, own: int | None) -> int:
    """Return 0 if the other person is ahead or `own` is None, 1 if both share a rank, else 2."""
    if own is None or other < own:
        return 0
    return 1 if other == own else 2


class Reading(StrEnum):
    """What a run that compares two submissions has shown."""

    MADE = "made"
    """Both passed, and there is a ratio of each benchmark."""
    FAILED = "failed"
    """The submission did not pass."""
    RIVAL_FAILED = "rival-failed"
    """Only the rival did not pass."""
    NOT_MADE = "not-made"
    """Nothing: the run was lost, or its worker cannot compare."""


def read(task: TaskDefinition, evaluation: Evaluation | None) -> Reading:
    """Return what a run has shown; None for one that ended without an evaluation."""
    if evaluation is None or evaluation.verdict is Verdict.TASK_ERROR:
        return Reading.NOT_MADE
    if evaluation.verdict is not Verdict.PASSED:
        return Reading.FAILED
    comparison = evaluation.comparison
    if comparison is None or comparison.rival_verdict is Verdict.TASK_ERROR:
        return Reading.NOT_MADE
    if comparison.rival_verdict is not Verdict.PASSED:
        return Reading.RIVAL_FAILED
    ratios = comparison.benchmarks
    whole = len(ratios) == len(task.timed(Mode.RANKED)) and len(ratios) > 0
    sound = all(isfinite(each.ratio) and isfinite(each.half_width) for each in ratios)
    return Reading.MADE if whole and sound else Reading.NOT_MADE


def combined(task: TaskDefinition, measured: Evaluation, ratios: Sequence[Ratio]) -> PairRatio:
    """Return the ratio of two scores, combined from the ratio of each benchmark.

    `measured` is an evaluation of the rival: its times are the weights of the benchmarks. What the
    faster one can have hidden in each of them adds up, unlike noise.
    """
    times = [each.upper_ns for each in case_times(task, measured)]
    if len(times) != len(ratios):
        times = [1.0] * len(ratios)
    changed = [
        ScoreValue(time * each.ratio, time * (each.half_width - each.unseen), time * each.unseen)
        for time, each in zip(times, ratios, strict=True)
    ]
    whole = combine(task.ranking_by, [ScoreValue(each, 0.0) for each in times]).time_ns
    value = combine(task.ranking_by, changed)
    return PairRatio(value.time_ns / whole, value.uncertainty_ns / whole)


def scaled(rival: ScoreValue, ratio: PairRatio, own: ScoreValue) -> ScoreValue:
    """Return the score of a run with this ratio to its rival; its claim stays its own.

    The rival's uncertainty is multiplied by the ratio too. What the judge's clock may miss of the
    run's own time is no less for that.
    """
    resolution_ns = None
    if rival.resolution_ns is not None:
        resolution_ns = max(rival.resolution_ns * ratio.ratio, own.resolution_ns or 0.0)
    return ScoreValue(
        rival.time_ns * ratio.ratio,
        rival.half_width_ns * ratio.ratio,
        resolution_ns,
        own.claimed_ns,
    )


def limited(value: ScoreValue, measured_ns: float, first_ns: float | None) -> ScoreValue:
    """Return a compared run's score, limited by its own time and that of the fastest other run.

    `measured_ns` was measured without a rival. `first_ns` is the other run's time, or the time that
    was measured for it without a rival if that is longer. If the holder has become slower than its
    score says, the ratio makes the run look faster than it is. So a ratio never puts a run ahead of
    all others by more than `LEADS_MOST`, unless the run's own measurement was that
    fast. If the time is raised, its uncertainty grows in proportion.
    """
    if first_ns is None:
        return value
    least_ns = min(measured_ns, (1 - LEADS_MOST) * first_ns)
    if value.time_ns >= least_ns:
        return value
    return scaled(value, PairRatio(least_ns / value.time_ns, 0.0), value)


def settled(held: ScoreValue, found: ScoreValue, *, again: bool) -> ScoreValue:
    """Return the score of a run after a comparison; `again` if another one came before it.

    A run that was compared with several holders counts with the slowest result, so that it passes
    none of them without having been faster.
    """
    return max(held, found, key=lambda each: each.upper_ns) if again else found


def level(held: ScoreValue, holder: ScoreValue) -> ScoreValue:
    """Return the score of a run that could not be compared: it displaces no one."""
    later_ns = max(0.0, holder.upper_ns - held.upper_ns)
    return replace(held, time_ns=held.time_ns + later_ns)
