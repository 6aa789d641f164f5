"""Scores of passed ranked evaluations, and the standings made from them."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from operator import mul

from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.noise import too_noisy
from runners.contract.evaluation import Evaluation, EvaluationRequest, Measurement, StopReason
from runners.contract.gpus import floors
from runners.contract.task import Mode, RankingBy, TaskDefinition, TaskFormat
from runners.contract.verdict import Verdict

TIE = 0.005
"""Two times that differ by at most this fraction are never told apart."""


@dataclass(frozen=True, slots=True)
class ScoreValue:
    """The time that counts, in nanoseconds, and its uncertainty; lower is better.

    It is the judge's own value. If there is none, it is what the task's own evaluation reported.
    """

    time_ns: float
    half_width_ns: float
    """Half of the 95 % interval, which describes the noise."""
    resolution_ns: float | None = 0.0
    """How much the judge's clock may miss; None if no clock of the judge confirms the time."""
    claimed_ns: float | None = None
    """The time by the submission's own clock; it decides nothing. None if there is none."""

    @property
    def confirmed(self) -> bool:
        """Return whether the time is the judge's own value."""
        return self.resolution_ns is not None

    @property
    def uncertainty_ns(self) -> float:
        """Return by how much the time may be wrong: the half-width plus the resolution."""
        return self.half_width_ns + (self.resolution_ns or 0.0)

    @property
    def upper_ns(self) -> float:
        """Return the upper end of the interval, by which times are ordered."""
        return self.time_ns + self.uncertainty_ns

    @property
    def passes_ns(self) -> float:
        """Return the upper end that another time must exceed for this one to be ahead of it."""
        return self.upper_ns + max(self.uncertainty_ns, TIE * self.upper_ns)


class Outcome(StrEnum):
    """The result of a comparison of two submissions for the first one."""

    FASTER = "faster"
    TIED = "tied"
    """The interval of the ratio contains 1."""
    SLOWER = "slower"


@dataclass(frozen=True, slots=True)
class PairRatio:
    """The time of a submission divided by that of a rival, with half of its 95 % interval.

    Both were timed in turns on one card. The half-width includes what a submission could hide from
    the judge's clock on the CPU, or on a GPU where no trains are possible.
    """

    ratio: float
    half_width: float

    @property
    def outcome(self) -> Outcome:
        """The result for the submission."""
        if abs(self.ratio - 1.0) <= self.half_width:
            return Outcome.TIED
        return Outcome.FASTER if self.ratio < 1.0 else Outcome.SLOWER

    @property
    def inverse(self) -> "PairRatio":
        """The ratio of the rival to the submission; a tie stays one: 2 with a half-width of 1.2."""
        return PairRatio(1.0 / self.ratio, self.half_width / self.ratio / min(1.0, self.ratio))

    def times(self, other: "PairRatio") -> "PairRatio":
        """Return the ratio to a third submission; `other` is the ratio of the rival to it."""
        ratio = self.ratio * other.ratio
        parts = self.half_width / self.ratio, other.half_width / other.ratio
        return PairRatio(ratio, ratio * math.hypot(*parts))


@dataclass(frozen=True, slots=True)
class Score:
    """A stored score, comparable only within the same task version and GPU type."""

    submission: SubmissionId
    person: PersonId
    person_name: str
    board: BoardId
    task_version: TaskVersionId
    gpu: str
    value: ScoreValue
    submitted_at: datetime
    pool: str = ""
    """The pool that timed it, see `pool_of`; empty if unrecorded."""
    met: tuple[tuple[SubmissionId, PairRatio], ...] = ()
    """The rivals with which it was compared (`bot.domain.confirmation`), oldest first."""
    vs_reference: PairRatio | None = None
    """The ratio to the reference that was timed in turn with it; None if none was."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of a leaderboard: a best score, its rank (shared by ties), the person's attempts."""

    rank: int
    score: Score
    attempts: int


def pool_of(worker: str | None, call: str | None) -> str:
    """Return the pool that ran a job: `local`, `modal`, `ray`, or a remote worker's name.

    Times of two pools may differ on the same GPU type. If a remote worker judges with another
    runner than `local`, both names count, as in `box modal`. `call` may be just the runner's name.
    """
    runner = (call or "").partition("/")[0].partition("_")[0]
    name, colon, _ = (worker or "").partition(":")
    if not colon:
        return runner
    return name if runner in {"", "local"} else f"{name} {runner}"


def mismatch(request: EvaluationRequest, evaluation: Evaluation) -> str | None:
    """Return why an evaluation does not answer a request; None when it does."""
    same = {"request_id": request.request_id, "mode": request.mode, "gpu": request.gpu}
    for name, requested in {**same, "task": request.task.name}.items():
        if requested != (returned := getattr(evaluation, name)):
            return f"asked for {name} {requested!r}, the runner answered {returned!r}"
    timed = sum(case.measurement is not None for case in evaluation.cases)
    ranked = request.mode is Mode.RANKED and evaluation.verdict is Verdict.PASSED
    wanted = len(request.task.timed(request.mode))
    compared = evaluation.comparison if request.rival else None
    if ranked and timed != wanted and not (compared and compared.rival_failed):
        return f"asked for {wanted} benchmarks, the runner timed {timed}"
    return None


def score(
    task: TaskDefinition, evaluation: Evaluation, *, ranked: bool = True
) -> ScoreValue | None:
    """Return the score of a passed ranked evaluation; None for any other.

    A run that is `too_noisy` has none, unless it is not `ranked`, as that of a reference.
    A workload counts at least the time that the GPU's nominal rates require. The half-widths of
    cases are independent, because they come from separate rounds; their resolutions are not.
    """
    if evaluation.verdict is not Verdict.PASSED or evaluation.mode is not Mode.RANKED:
        return None
    contract = task.format is TaskFormat.IO_CONTRACT  # times a reference too, ranks no submissions
    if contract or (ranked and too_noisy(evaluation)):
        return None
    times = case_times(task, evaluation)
    if not times:
        return None
    combined = combine(task.ranking_by, times)
    sound = combined.time_ns > 0 and math.isfinite(combined.passes_ns)
    return combined if sound else None


def counted(measured: Measurement) -> ScoreValue:
    """Return the time of a workload that counts in a ranked run.

    For a run that ended early, it is the upper end of the interval. The mean of few rounds varies
    more. If it counted, a person could end runs early and retry until one is low by chance.
    """
    value = judged(measured)
    if value.confirmed and ended_early(measured):
        return replace(value, time_ns=value.upper_ns)
    return value


def judged(measured: Measurement) -> ScoreValue:
    """Return the time of a workload by the judge's own clock.

    If only the task's own evaluation timed it, it is the time that this evaluation reported.
    """
    own_ns, claimed_ns = measured.bound_ns, measured.claimed_ns
    if claimed_ns is None:
        own_ns = max(own_ns, measured.time_ns)
    if measured.stop_reason is StopReason.TASK or own_ns <= 0:
        return ScoreValue(measured.time_ns, measured.half_width_ns, None)
    return ScoreValue(own_ns, measured.half_width_ns, measured.resolution_ns, claimed_ns)


def ended_early(measured: Measurement) -> bool:
    """Return whether there were too few rounds to know by how much rounds vary."""
    single = measured.stop_reason is StopReason.ROUND_CAP and measured.rounds == 1
    return single or measured.cut_short or measured.stop_reason is StopReason.SLOW


def case_times(task: TaskDefinition, evaluation: Evaluation) -> list[ScoreValue]:
    """Return the times that count, one for each timed case."""
    least = floors(task, evaluation.gpu)
    times = [
        (counted(case.measurement), least.get(case.spec, 0.0))
        for case in evaluation.cases
        if case.measurement is not None
    ]
    return [replace(value, time_ns=max(value.time_ns, floor)) for value, floor in times]


def combine(ranking_by: RankingBy, times: Sequence[ScoreValue]) -> ScoreValue:
    """Return the time of several workloads, combined as the task ranks by."""
    if ranking_by is RankingBy.LAST:
        return times[-1]
    centre = _mean(ranking_by, [each.time_ns for each in times])
    geom = ranking_by is RankingBy.GEOM
    parts = [(centre / each.time_ns if geom else 1.0) / len(times) for each in times]
    unseen = [each.resolution_ns for each in times if each.resolution_ns is not None]
    claims = [each.claimed_ns for each in times if each.claimed_ns is not None]
    return ScoreValue(
        centre,
        math.hypot(*(each.half_width_ns * part for each, part in zip(times, parts, strict=True))),
        sum(map(mul, unseen, parts)) if len(unseen) == len(times) else None,
        _mean(ranking_by, claims) if len(claims) == len(times) else None,
    )


def _mean(ranking_by: RankingBy, times: Sequence[float]) -> float:
    if ranking_by is RankingBy.GEOM and min(times) > 0:
        return math.exp(sum(map(math.log, times)) / len(times))
    return sum(each / len(times) for each in times)


@dataclass(frozen=True, slots=True)
class Entrant:
    """One person on a leaderboard: the best score, and how many scores they have."""

    best: Score
    attempts: int


def entrants(scores: Iterable[Score]) -> tuple[Entrant, ...]:
    """Return each person's best score, by the upper end; of equal ones, the earlier submission."""
    ordered = sorted(scores, key=by_speed)
    attempts = Counter(each.person for each in ordered)
    best: dict[PersonId, Score] = {}
    for each in ordered:
        best.setdefault(each.person, each)
    return tuple(Entrant(each, attempts[each.person]) for each in best.values())


def is_ahead(one: ScoreValue, other: ScoreValue) -> bool:
    """Return whether one time is ahead of the other, for runs that no comparison connects.

    Its upper end is below that of the other by more than its own uncertainty.
    """
    return one.passes_ns < other.upper_ns


def leads(one: Score, other: Score) -> bool:
    """Return whether one score is ahead of another; if the two were compared, by their ratio."""
    ratio = dict(one.met).get(other.submission)
    if ratio is None and (found := dict(other.met).get(one.submission)):
        ratio = found.inverse
    return is_ahead(one.value, other.value) if ratio is None else ratio.outcome is Outcome.FASTER


def rank_entrants(entered: Iterable[Entrant]) -> tuple[Standing, ...]:
    """Return the standings of different people; ValueError for scores of several leaderboards.

    A rank is one more than the number of people who are ahead. Between two that were compared, or
    that a chain of comparisons connects, the ratio decides who is ahead.
    """
    ordered = sorted(entered, key=lambda each: by_speed(each.best))
    if len({(each.best.board, each.best.task_version, each.best.gpu) for each in ordered}) > 1:
        raise ValueError("scores of several boards, task versions or GPU types are not comparable")
    passes = sorted(each.best.value.passes_ns for each in ordered)
    scores = {each.best.submission: each.best for each in ordered}
    changed = Counter[SubmissionId]()
    for (one, other), ratio in _connected(scores).items():
        ahead = ratio.outcome is Outcome.FASTER
        changed[other] += ahead - is_ahead(scores[one].value, scores[other].value)
    standings = [
        Standing(
            1 + bisect_left(passes, each.best.value.upper_ns) + changed[each.best.submission],
            each.best,
            each.attempts,
        )
        for each in ordered
    ]
    return tuple(sorted(standings, key=lambda each: (each.rank, each.score.value.time_ns)))


_Ratios = Mapping[SubmissionId, Mapping[SubmissionId, PairRatio]]


def _connected(
    scores: Mapping[SubmissionId, Score],
) -> Mapping[tuple[SubmissionId, SubmissionId], PairRatio]:
    """Return the ratio of every two scores that comparisons connect, also through former runs."""
    direct: dict[SubmissionId, dict[SubmissionId, PairRatio]] = {}
    for score in scores.values():
        for rival, ratio in score.met:
            direct.setdefault(score.submission, {})[rival] = ratio
            direct.setdefault(rival, {})[score.submission] = ratio.inverse
    return {
        (one, other): ratio
        for one in direct.keys() & scores.keys()
        for other, ratio in _reached(one, direct).items()
        if other != one and other in scores
    }


def _reached(start: SubmissionId, direct: _Ratios) -> Mapping[SubmissionId, PairRatio]:
    """Return the ratio to each run that comparisons connect, over the fewest comparisons."""
    known, found = {start: PairRatio(1.0, 0.0)}, [start]
    for one in found:  # the list grows during the loop
        for other, ratio in direct[one].items():
            if other not in known:
                known[other] = known[one].times(ratio)
                found.append(other)
    return known


def records(scores: Iterable[Score]) -> tuple[Score, ...]:
    """Return the first score, and each that is ahead of the record before it, oldest first."""
    found: list[Score] = []
    for each in sorted(scores, key=by_submission_time):
        if not found or leads(each, found[-1]):
            found.append(each)
    return tuple(found)


def by_submission_time(score: Score) -> tuple[datetime, int]:
    """Sort key: scores in the order of submission."""
    return score.submitted_at, score.submission


def by_speed(score: Score) -> tuple[float, datetime, int]:
    """Sort key: the lowest upper end first; of equal ones, the earlier submission."""
    return score.value.upper_ns, score.submitted_at, score.submission
