"""An evaluation in KernelBot's format: modes, phases, results, diagnostics and runs.

A ranked run checks every timed answer on secret inputs. So it corresponds to two of KernelBot's
phases at once: the one with the public score, and the secret one that confirms it. For both, only
time and verdict are reported.

Results are `key: value`, with times in nanoseconds. `err` is half of the 95 % interval. If a task's
own evaluation timed the kernel, single samples are unknown, and `std`, `best` and `worst` are left
out.
"""

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from bot.domain.errors import UserError
from bot.domain.job import Job
from bot.domain.scoring import ScoreValue
from bot.domain.status import JobStatus
from bot.reports.escaping import clean
from bot.reports.submission import verdict_line
from bot.web.compat.kernelbot.http import Json
from bot.web.compat.kernelbot.wording import shortened
from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus, Evaluation, Measurement
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict

WORDS = {
    Mode.TEST: "test",
    Mode.BENCHMARK: "benchmark",
    Mode.PROFILE: "profile",
    Mode.RANKED: "leaderboard",
}
_MODES = {word: mode for mode, word in WORDS.items()}


def mode_of(word: str) -> Mode:
    """The mode of this name, case-insensitive; UserError lists the existing ones."""
    found = _MODES.get(word.lower())
    if found is None:
        words = f"no mode {word[:30]!r}; there are: {', '.join(_MODES)}"
        raise UserError("bad-mode", words)
    return found


_STATUSES = {CaseStatus.PASSED: "pass", CaseStatus.FAILED: "fail"}
"""Skipped cases are not reported."""


def result_of(evaluation: Evaluation, kind: CaseKind, *, passed: bool) -> dict[str, str]:
    """The cases of one kind, and whether they were right."""
    cases = [case for case in evaluation.cases if case.kind is kind]
    found = {f"{kind}-count": str(len(cases))}
    for number, case in enumerate(cases):
        found |= {f"{kind}.{number}.{key}": value for key, value in _said(case)}
    return found | {"check": check(passed=passed)}


def check(*, passed: bool) -> str:
    """The final `check` value of a phase."""
    return "pass" if passed else "fail"


def _said(case: CaseResult) -> Iterator[tuple[str, str]]:
    yield "spec", clean(case.spec)
    if case.status in _STATUSES:
        yield "status", _STATUSES[case.status]
    if case.message:
        yield "error", clean(case.message).replace("\n", "\\n")
    if case.measurement is not None:
        yield from _times(case.measurement)


def _times(measured: Measurement) -> Iterator[tuple[str, str]]:
    samples = [sample for each in measured.samples for sample in each]
    yield "runs", str(len(samples) or measured.rounds)
    yield "mean", _ns(measured.time_ns)
    yield "err", _ns(measured.half_width_ns)
    if samples:
        yield "std", _ns(statistics.stdev(samples) if len(samples) > 1 else 0.0)
        yield from _ends(samples)


def _ends(samples: Iterable[float]) -> Iterator[tuple[str, str]]:
    ordered = sorted(samples)
    yield "best", _ns(ordered[0])
    yield "worst", _ns(ordered[-1])


def _ns(time_ns: float) -> str:
    return repr(float(time_ns))


_KINDS = {Mode.TEST: CaseKind.TEST, Mode.BENCHMARK: CaseKind.BENCHMARK}


@dataclass(frozen=True, slots=True)
class KernelBotRun:
    """One phase of an evaluation; `result` is None if its cases must not be disclosed."""

    mode: Mode
    passed: bool
    secret: bool = False
    result: Mapping[str, str] | None = None


def phases(evaluation: Evaluation) -> Iterator[KernelBotRun]:
    """The phases that a disclosed evaluation reached, in order."""
    passed = evaluation.verdict is Verdict.PASSED
    mode = evaluation.mode
    if mode is not Mode.RANKED:
        kind = _KINDS.get(mode)
        result = None if kind is None else result_of(evaluation, kind, passed=passed)
        yield KernelBotRun(mode, passed, result=result)
        return
    timed = passed or evaluation.stage is Stage.TIMING
    if not timed or any(case.kind is CaseKind.TEST for case in evaluation.cases):
        yield KernelBotRun(
            Mode.TEST, timed, result=result_of(evaluation, CaseKind.TEST, passed=timed)
        )
    if timed:
        yield KernelBotRun(mode, passed)
        yield KernelBotRun(mode, passed, secret=True)


_EXITS = {Verdict.PASSED: 0, Verdict.WRONG_ANSWER: 112, Verdict.TIMED_OUT: 114}
"""The exit statuses of KernelBot's evaluators; all other verdicts are crashes there."""
_CRASH = 1
_RAN = {_EXITS[Verdict.PASSED], _EXITS[Verdict.WRONG_ANSWER]}


def diagnostics(evaluation: Evaluation, phase: KernelBotRun, *, stdout: str = "") -> Json:
    """How a phase ended."""
    verdict = Verdict.PASSED if phase.passed else evaluation.verdict
    exit_code = _EXITS.get(verdict, _CRASH)
    return {
        "stdout": stdout,
        "stderr": "" if phase.passed else _wrong(evaluation),
        "success": exit_code in _RAN,
        "exit_code": exit_code,
        "duration": evaluation.wall_s,
    }


def compilation(evaluation: Evaluation) -> Json | None:
    """The result of the build; None if there is nothing to report."""
    failed = evaluation.stage is Stage.BUILD
    if not failed and evaluation.compiled is None:
        return None
    return {
        "nvcc_found": True,
        "nvcc_version": evaluation.environment.cuda or "",
        "success": not failed,
        "command": "",
        "stdout": shortened(evaluation.log) if failed else "",
        "stderr": _wrong(evaluation) if failed else "",
        "exit_code": _CRASH if failed else 0,
    }


def _wrong(evaluation: Evaluation) -> str:
    return shortened(f"{verdict_line(evaluation).text}: {evaluation.message}")


def runs_of(job: JobStatus, score: ScoreValue | None) -> list[Json]:
    """The runs of an ended job; [] if it has not ended."""
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


def _scores(phase: KernelBotRun) -> bool:
    return phase.mode is Mode.RANKED and phase.passed and not phase.secret


def _run(job: Job, phase: KernelBotRun, score: str | None) -> Json:
    return {
        "start_time": moment(job.started_at),
        "end_time": moment(job.finished_at),
        "mode": WORDS[phase.mode],
        "secret": phase.secret,
        "runner": job.gpu,
        "score": score,
        "passed": phase.passed,
    }


def _told(evaluation: Evaluation, phase: KernelBotRun, *, is_last: bool) -> Json:
    """The details of a public test or benchmark; the last phase has the log."""
    log = shortened(evaluation.log) if is_last else ""
    found = diagnostics(evaluation, phase, stdout=log)
    built = compilation(evaluation)
    return {
        "result": dict(phase.result or {}),
        "diagnostics": found if built is None else {**found, "compilation": built},
    }


def seconds(score: ScoreValue | None) -> str | None:
    """A score in seconds, as a decimal text."""
    return None if score is None else format(Decimal(repr(score.time_ns)) / 10**9, "f")


def moment(at: datetime | None) -> str | None:
    """A time in KernelBot's format."""
    return None if at is None else at.isoformat()
