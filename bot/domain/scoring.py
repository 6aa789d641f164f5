"""Turns one passed ranked evaluation into one score."""

import math
from collections.abc import Mapping, Sequence
from statistics import median

from bot.domain.score import ScoreValue
from runners.contract.evaluation import CaseKind, Evaluation, EvaluationRequest, Measurement
from runners.contract.peaks import floors
from runners.contract.task import Mode, RankingBy, TaskDefinition, TaskFormat
from runners.contract.verdict import Verdict


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
