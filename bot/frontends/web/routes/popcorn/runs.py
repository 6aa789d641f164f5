"""A submission's jobs as KernelBot's runs: one for each phase that was begun.

Our ranked run checks every timed answer on inputs that nobody has seen, so it is both of
KernelBot's at once: the one with the public score, and the secret one that confirms it. Of neither
more is told than time and verdict.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from bot.domain.job import Job
from bot.domain.score import ScoreValue
from bot.frontends.web.routes.popcorn.modes import WORDS
from bot.frontends.web.routes.popcorn.results import result_of
from bot.services.status import JobStatus
from runners.contract.evaluation import CaseKind, Evaluation
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict

Json = dict[str, object]

_KINDS = {Mode.TEST: CaseKind.TEST, Mode.BENCHMARK: CaseKind.BENCHMARK}


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of an evaluation; `result` is None where nothing may be told of its cases."""

    mode: Mode
    passed: bool
    secret: bool = False
    result: Mapping[str, str] | None = None


def phases(evaluation: Evaluation) -> Iterator[Phase]:
    """The phases that an evaluation came to, in order; hand in a disclosed one."""
    passed = evaluation.verdict is Verdict.PASSED
    mode = evaluation.mode
    if mode is not Mode.RANKED:
        kind = _KINDS.get(mode)
        result = None if kind is None else result_of(evaluation, kind, passed=passed)
        yield Phase(mode, passed, result=result)
        return
    timed = passed or evaluation.stage is Stage.TIMING
    if not timed or any(case.kind is CaseKind.TEST for case in evaluation.cases):
        yield Phase(Mode.TEST, timed, result=result_of(evaluation, CaseKind.TEST, passed=timed))
    if timed:
        yield Phase(mode, passed)
        yield Phase(mode, passed, secret=True)


def runs_of(job: JobStatus, score: ScoreValue | None) -> list[Json]:
    """The runs of a job that has ended; none of one that moves."""
    if job.evaluation is None:
        return []
    return [
        _run(job.job, phase, seconds(score) if _scores(phase) else None)
        for phase in phases(job.evaluation)
    ]


def _scores(phase: Phase) -> bool:
    return phase.mode is Mode.RANKED and phase.passed and not phase.secret


def _run(job: Job, phase: Phase, score: str | None) -> Json:
    run: Json = {
        "start_time": moment(job.started_at),
        "end_time": moment(job.finished_at),
        "mode": WORDS[phase.mode],
        "secret": phase.secret,
        "runner": job.gpu,
        "score": score,
        "passed": phase.passed,
    }
    return run if phase.result is None else {**run, "result": dict(phase.result)}


def seconds(score: ScoreValue | None) -> str | None:
    """A score in seconds, as text of decimals."""
    return None if score is None else format(Decimal(repr(score.time_ns)) / 10**9, "f")


def moment(at: datetime | None) -> str | None:
    """A time as KernelBot writes it."""
    return None if at is None else at.isoformat()
