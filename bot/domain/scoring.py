"""Scores of passed ranked evaluations, and the standings made of them."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from runners.contract.evaluation import (
    CaseKind,
    Evaluation,
    EvaluationRequest,
    Measurement,
    StopReason,
)
from runners.contract.gpus import floors
from runners.contract.task import Mode, RankingBy, TaskDefinition, TaskFormat
from runners.contract.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ScoreValue:
    """A time in nanoseconds and half of its 95 % interval; lower is better."""

    time_ns: float
    half_width_ns: float


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
    rival: SubmissionId | None = None
    """The submission with which it was compared, see `bot.domain.confirmation`."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of a leaderboard: a person's best score, its shared rank, and their attempts."""

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
    for name in ("request_id", "mode", "gpu"):
        requested, returned = getattr(request, name), getattr(evaluation, name)
        if requested != returned:
            return f"asked for {name} {requested!r}, the runner answered {returned!r}"
    if evaluation.task != request.task.name:
        return f"asked for task {request.task.name!r}, the runner answered {evaluation.task!r}"
    timed = sum(case.kind is CaseKind.BENCHMARK for case in evaluation.cases)
    ranked = request.mode is Mode.RANKED and evaluation.verdict is Verdict.PASSED
    wanted = len(request.task.timed(request.mode))
    if ranked and timed != wanted:
        return f"asked for {wanted} benchmarks, the runner timed {timed}"
    return None


def score(task: TaskDefinition, evaluation: Evaluation) -> ScoreValue | None:
    """Return the score of a passed ranked evaluation; None for any other.

    A workload counts at least the time that the GPU's nominal rates require, and one cut short
    counts its `counted` time. The half-widths of cases are independent, because they come from
    separate rounds.
    """
    if evaluation.verdict is not Verdict.PASSED or evaluation.mode is not Mode.RANKED:
        return None
    if task.format is TaskFormat.IO_CONTRACT:  # it times a reference too, and ranks no submissions
        return None
    times = case_times(task, evaluation)
    if not times:
        return None
    combined = combine(task.ranking_by, times)
    sound = math.isfinite(combined.time_ns) and math.isfinite(combined.half_width_ns)
    return combined if sound and combined.time_ns > 0 else None


def counted(measured: Measurement) -> float:
    """Return the time in ns that counts: if cut short, the slowest round or the interval's end.

    A submission that uses up its time limit has fewer rounds, whose mean varies more: if the mean
    counted, it would pay to retry until it is low by chance. For one that is much slower than the
    reference, which has two rounds of few calls, the end of the interval counts.
    """
    if measured.stop_reason is StopReason.SLOW:
        return measured.time_ns + measured.half_width_ns
    if not measured.cut_short:
        return measured.time_ns
    rounds = [median(samples) for samples in measured.samples if samples]
    if len(rounds) < 2:
        return measured.time_ns + measured.half_width_ns
    return max(measured.time_ns, *rounds)


def case_times(task: TaskDefinition, evaluation: Evaluation) -> list[ScoreValue]:
    """Return the times that count, one for each timed case."""
    least = floors(task, evaluation.gpu)
    return [
        ScoreValue(max(counted(measured), least.get(case.spec, 0.0)), measured.half_width_ns)
        for case in evaluation.cases
        if (measured := case.measurement) is not None
    ]


def combine(ranking_by: RankingBy, times: Sequence[ScoreValue]) -> ScoreValue:
    """Return the time of several workloads, combined as the task ranks by."""
    count = len(times)
    match ranking_by:
        case RankingBy.LAST:
            return times[-1]
        case RankingBy.MEAN:
            centre = sum(each.time_ns / count for each in times)
            return ScoreValue(centre, math.hypot(*(each.half_width_ns / count for each in times)))
        case RankingBy.GEOM:
            centre = math.exp(sum(math.log(each.time_ns) for each in times) / count)
            relative = math.hypot(*(each.half_width_ns / each.time_ns for each in times)) / count
            return ScoreValue(centre, centre * relative)


TIE = 0.005
"""Times that differ by at most this fraction count as equal, whatever their intervals."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """One person on a leaderboard: the best score, and how many scores they have."""

    best: Score
    attempts: int


def entrants(scores: Iterable[Score]) -> tuple[Entrant, ...]:
    """Return each person's fastest score; of equal ones, the earlier submission."""
    ordered = sorted(scores, key=by_speed)
    attempts = Counter(each.person for each in ordered)
    best: dict[PersonId, Score] = {}
    for each in ordered:
        best.setdefault(each.person, each)
    return tuple(Entrant(each, attempts[each.person]) for each in best.values())


def rank_entrants(entered: Iterable[Entrant]) -> tuple[Standing, ...]:
    """Return the standings of different people; ValueError for scores of several leaderboards.

    Ranks go 1, 1, 3: an entry joins a group while it cannot be told apart from the group's first.
    """
    ordered = sorted(entered, key=lambda each: by_speed(each.best))
    if len({(each.best.board, each.best.task_version, each.best.gpu) for each in ordered}) > 1:
        raise ValueError("scores of several boards, task versions or GPU types are not comparable")
    standings: list[Standing] = []
    first: Standing | None = None
    for position, each in enumerate(ordered, start=1):
        if first is None or not _share(first.score, each.best):
            first = Standing(position, each.best, each.attempts)
            standings.append(first)
        else:
            standings.append(Standing(first.rank, each.best, each.attempts))
    return tuple(standings)


def records(scores: Iterable[Score]) -> tuple[Score, ...]:
    """Return the scores that were the fastest when they were submitted, oldest first."""
    fastest: list[Score] = []
    for each in sorted(scores, key=by_submission_time):
        if not fastest or each.value.time_ns < fastest[-1].value.time_ns:
            fastest.append(each)
    return tuple(fastest)


def _share(first: Score, later: Score) -> bool:
    """Return whether two entries share a rank.

    If they were compared, on one card in the same minutes, the interval of their ratio decides.
    """
    for one, other in ((first, later), (later, first)):
        if one.rival == other.submission:
            difference = abs(one.value.time_ns - other.value.time_ns)
            return difference <= one.value.half_width_ns
    return ties(first.value, later.value)


def ties(first: ScoreValue, later: ScoreValue) -> bool:
    """Return whether a later entry ties with a group's first: within its interval, or 0.5 %.

    The later entry's own interval does not count: by being slow now and then, a kernel could widen
    it at will and tie with any faster one.
    """
    return later.time_ns - first.time_ns <= max(first.half_width_ns, TIE * first.time_ns)


def indistinguishable(one: ScoreValue, other: ScoreValue) -> bool:
    """Return whether two times differ by at most their larger interval, or 0.5 %."""
    resolution = max(one.half_width_ns, other.half_width_ns)
    resolution = max(resolution, TIE * min(one.time_ns, other.time_ns))
    return abs(one.time_ns - other.time_ns) <= resolution


def by_submission_time(score: Score) -> tuple[datetime, int]:
    """Sort key: scores in the order of submission."""
    return score.submitted_at, score.submission


def by_speed(score: Score) -> tuple[float, datetime, int]:
    """Sort key: the fastest first; of equal ones, the earlier submission."""
    return score.value.time_ns, score.submitted_at, score.submission
