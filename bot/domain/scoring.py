"""Scores of passed ranked evaluations, and the standings that they make."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from runners.contract.evaluation import CaseKind, Evaluation, EvaluationRequest, Measurement
from runners.contract.peaks import floors
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
    """Which machines timed it, see `pool_of`; empty where that was not noted."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of a leaderboard: a person's best score, its shared rank, and the tries it took."""

    rank: int
    score: Score
    attempts: int


def pool_of(worker: str | None, call: str | None) -> str:
    """The name of the machines that did a job: `local`, `modal`, `ray`, or an agent's name.

    Times of two pools may differ though their GPU type is one. An agent that judges by anything but
    its own cards says so, as in `box modal`. In place of a call its runner's name will do.
    """
    runner = (call or "").partition("/")[0].partition("_")[0]
    agent, is_agent, _ = (worker or "").partition(":")
    if not is_agent:
        return runner
    return agent if runner in {"", "local"} else f"{agent} {runner}"


def mismatch(request: EvaluationRequest, evaluation: Evaluation) -> str | None:
    """Why an evaluation is no answer to a request, or None when it is one."""
    for name in ("request_id", "mode", "gpu"):
        asked, answered = getattr(request, name), getattr(evaluation, name)
        if asked != answered:
            return f"asked for {name} {asked!r}, the runner answered {answered!r}"
    if evaluation.task != request.task.name:
        return f"asked for task {request.task.name!r}, the runner answered {evaluation.task!r}"
    timed = sum(case.kind is CaseKind.BENCHMARK for case in evaluation.cases)
    ranked = request.mode is Mode.RANKED and evaluation.verdict is Verdict.PASSED
    wanted = len(request.task.timed(request.mode))
    if ranked and timed != wanted:
        return f"asked for {wanted} benchmarks, the runner timed {timed}"
    return None


def score(task: TaskDefinition, evaluation: Evaluation) -> ScoreValue | None:
    """The score of a passed ranked evaluation, None for any other.

    A workload counts no less than the GPU needs for it by its nominal rates, and one that was cut
    short what `counted` says. The half-widths of the cases are taken as independent: they come
    from separate rounds.
    """
    if evaluation.verdict is not Verdict.PASSED or evaluation.mode is not Mode.RANKED:
        return None
    if task.format is TaskFormat.IO_CONTRACT:  # times a reference too, and ranks nobody
        return None
    times = _times(evaluation, floors(task, evaluation.gpu))
    if not times:
        return None
    combined = _combined(task.ranking_by, times)
    sound = math.isfinite(combined.time_ns) and math.isfinite(combined.half_width_ns)
    return combined if sound and combined.time_ns > 0 else None


def counted(measured: Measurement) -> float:
    """The time in ns that counts: of few rounds the slowest, of a single one its interval's end.

    A submission that wastes its time limit has fewer rounds than others: their mean would be the
    more worth trying again until it comes out low.
    """
    if not measured.cut_short:
        return measured.time_ns
    rounds = [median(samples) for samples in measured.samples if samples]
    if len(rounds) < 2:
        return measured.time_ns + measured.half_width_ns
    return max(measured.time_ns, *rounds)


def _times(evaluation: Evaluation, least: Mapping[str, float]) -> list[ScoreValue]:
    return [
        ScoreValue(max(counted(measured), least.get(case.spec, 0.0)), measured.half_width_ns)
        for case in evaluation.cases
        if (measured := case.measurement) is not None
    ]


def _combined(ranking_by: RankingBy, times: Sequence[ScoreValue]) -> ScoreValue:
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
"""Two times that differ by less than this fraction share a rank, whatever their intervals say."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """One person on a leaderboard: the best score, and of how many it is the best."""

    best: Score
    attempts: int


def entrants(scores: Iterable[Score]) -> tuple[Entrant, ...]:
    """Each person's fastest score; of equal ones the earlier submission."""
    everything = sorted(scores, key=in_order)
    attempts = Counter(each.person for each in everything)
    best: dict[PersonId, Score] = {}
    for each in everything:
        best.setdefault(each.person, each)
    return tuple(Entrant(each, attempts[each.person]) for each in best.values())


def rank_entrants(entered: Iterable[Entrant]) -> tuple[Standing, ...]:
    """The standings of people who are each there once; ValueError for a mixture of leaderboards.

    Ranks go 1, 1, 3: an entry belongs to a group while the group's first cannot be told from it.
    """
    ordered = sorted(entered, key=lambda each: in_order(each.best))
    if len({(each.best.board, each.best.task_version, each.best.gpu) for each in ordered}) > 1:
        raise ValueError("scores of several boards, task versions or GPU types are not comparable")
    standings: list[Standing] = []
    first: Standing | None = None
    for place, each in enumerate(ordered, start=1):
        if first is None or not ties(first.score.value, each.best.value):
            first = Standing(place, each.best, each.attempts)
            standings.append(first)
        else:
            standings.append(Standing(first.rank, each.best, each.attempts))
    return tuple(standings)


def records(scores: Iterable[Score]) -> tuple[Score, ...]:
    """The scores that were the fastest of all when they were submitted, oldest first."""
    found: list[Score] = []
    for each in sorted(scores, key=in_time):
        if not found or each.value.time_ns < found[-1].value.time_ns:
            found.append(each)
    return tuple(found)


def ties(first: ScoreValue, later: ScoreValue) -> bool:
    """Whether a later entry shares the rank of a group's first: within its interval, or 0.5 %.

    The later one's own interval does not count: a kernel that is slow now and then has as wide a
    one as it wants, and would else stand next to any that is faster.
    """
    return later.time_ns - first.time_ns <= max(first.half_width_ns, TIE * first.time_ns)


def indistinguishable(one: ScoreValue, other: ScoreValue) -> bool:
    """Whether two times differ by no more than their larger interval, or than 0.5 %."""
    resolution = max(one.half_width_ns, other.half_width_ns)
    resolution = max(resolution, TIE * min(one.time_ns, other.time_ns))
    return abs(one.time_ns - other.time_ns) <= resolution


def in_time(score: Score) -> tuple[datetime, int]:
    """Sorts scores as they were submitted."""
    return score.submitted_at, score.submission


def in_order(score: Score) -> tuple[float, datetime, int]:
    """Sorts scores as they stand: the fastest first, of equal ones the earlier submission."""
    return score.value.time_ns, score.submitted_at, score.submission
