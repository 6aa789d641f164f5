"""A submission's jobs as KernelBot's runs: one for each phase that was begun."""

from datetime import datetime
from decimal import Decimal

from bot.domain.job import Job
from bot.domain.score import ScoreValue
from bot.domain.status import JobStatus
from bot.frontends.web.routes.popcorn.diagnostics import compilation, diagnostics
from bot.frontends.web.routes.popcorn.drawing import shortened
from bot.frontends.web.routes.popcorn.modes import WORDS
from bot.frontends.web.routes.popcorn.phases import Phase, phases
from runners.contract.evaluation import Evaluation
from runners.contract.task import Mode

Json = dict[str, object]


def runs_of(job: JobStatus, score: ScoreValue | None) -> list[Json]:
    """The runs of a job that has ended; none of one that moves."""
    if job.evaluation is None:
        return []
    public = [phase for phase in phases(job.evaluation) if not phase.secret]
    found = []
    for phase in phases(job.evaluation):
        run = _run(job.job, phase, seconds(score) if _scores(phase) else None)
        if phase.result is not None:
            run |= _told(job.evaluation, phase, is_last=phase == public[-1])
        found.append(run)
    return found


def _scores(phase: Phase) -> bool:
    return phase.mode is Mode.RANKED and phase.passed and not phase.secret


def _run(job: Job, phase: Phase, score: str | None) -> Json:
    return {
        "start_time": moment(job.started_at),
        "end_time": moment(job.finished_at),
        "mode": WORDS[phase.mode],
        "secret": phase.secret,
        "runner": job.gpu,
        "score": score,
        "passed": phase.passed,
    }


def _told(evaluation: Evaluation, phase: Phase, *, is_last: bool) -> Json:
    """What a public test or benchmark says beyond its verdict; the log goes with the last phase."""
    log = shortened(evaluation.log) if is_last else ""
    found = diagnostics(evaluation, phase, stdout=log)
    built = compilation(evaluation)
    return {
        "result": dict(phase.result or {}),
        "diagnostics": found if built is None else {**found, "compilation": built},
    }


def seconds(score: ScoreValue | None) -> str | None:
    """A score in seconds, as text of decimals."""
    return None if score is None else format(Decimal(repr(score.time_ns)) / 10**9, "f")


def moment(at: datetime | None) -> str | None:
    """A time as KernelBot writes it."""
    return None if at is None else at.isoformat()
