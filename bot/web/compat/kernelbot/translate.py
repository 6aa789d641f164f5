"""Submissions and evaluations in KernelBot's format, and the texts that popcorn-cli shows.

A ranked run checks every timed answer on secret inputs. So it corresponds to two of KernelBot's
phases at once: the one with the public score, and the secret one that confirms it. For both, only
time and verdict are reported.

Results are `key: value`, with times in nanoseconds. `err` is half of the 95 % interval. If a task's
own evaluation timed the kernel, single samples are unknown, and `std`, `best` and `worst` are left
out.

At the states `failed`, `timed_out` and `hacked`, popcorn-cli shows the error message and exits with
an error. It shows every other state unchanged until the submission is done.
"""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import assert_never

from bot.domain.errors import UserError
from bot.domain.job import Job, JobState
from bot.domain.scoring import ScoreValue, judged
from bot.domain.status import JobStatus, SubmissionStatus, cancel_words
from bot.domain.submission import Exclusion, ExclusionKind
from bot.reports import charts, escaping
from bot.reports.blocks import Attachment, Block, Chart, Link, Log, Report, Table, Text
from bot.reports.submission import evaluation_report, job_line, verdict_line
from bot.web.compat.kernelbot.http import Json
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
    """Return the mode of this name, case-insensitive; UserError lists the existing ones."""
    mode = _MODES.get(word.lower())
    if mode is None:
        message = f"no mode {word[:30]!r}; there are: {', '.join(_MODES)}"
        raise UserError("bad-mode", message)
    return mode


_STATUSES = {CaseStatus.PASSED: "pass", CaseStatus.FAILED: "fail"}
"""Skipped cases are not reported."""


def result_of(evaluation: Evaluation, kind: CaseKind, *, passed: bool) -> dict[str, str]:
    """Return the cases of one kind, and whether the phase passed."""
    cases = [case for case in evaluation.cases if case.kind is kind]
    lines = {f"{kind}-count": str(len(cases))}
    for number, case in enumerate(cases):
        lines |= {f"{kind}.{number}.{key}": value for key, value in _case_lines(case)}
    return lines | {"check": check(passed=passed)}


def check(*, passed: bool) -> str:
    """Return the final `check` value of a phase."""
    return "pass" if passed else "fail"


def _case_lines(case: CaseResult) -> Iterator[tuple[str, str]]:
    yield "spec", escaping.clean(case.spec)
    if case.status in _STATUSES:
        yield "status", _STATUSES[case.status]
    if case.message:
        yield "error", escaping.clean(case.message).replace("\n", "\\n")
    if case.measurement is not None:
        yield from _times(case.measurement)


def _times(measured: Measurement) -> Iterator[tuple[str, str]]:
    samples = [sample for each in measured.samples for sample in each]
    yield "runs", str(len(samples) or measured.rounds)
    yield "mean", _ns(judged(measured).time_ns)
    yield "err", _ns(measured.half_width_ns)
    if samples:
        yield "std", _ns(statistics.stdev(samples) if len(samples) > 1 else 0.0)
        yield "best", _ns(min(samples))
        yield "worst", _ns(max(samples))


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
    """Yield the phases that a disclosed evaluation reached, in order."""
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
"""The exit statuses of KernelBot's evaluators; they have `_CRASH` for all other verdicts."""
_CRASH = 1
_RAN = {_EXITS[Verdict.PASSED], _EXITS[Verdict.WRONG_ANSWER]}


def diagnostics(evaluation: Evaluation, phase: KernelBotRun, *, stdout: str = "") -> Json:
    """Return how a phase ended."""
    verdict = Verdict.PASSED if phase.passed else evaluation.verdict
    exit_code = _EXITS.get(verdict, _CRASH)
    return {
        "stdout": stdout,
        "stderr": "" if phase.passed else _error_text(evaluation),
        "success": exit_code in _RAN,
        "exit_code": exit_code,
        "duration": evaluation.wall_s,
    }


def compilation(evaluation: Evaluation) -> Json | None:
    """Return the result of the build; None if there is nothing to report."""
    failed = evaluation.stage is Stage.BUILD
    if not failed and evaluation.compiled is None:
        return None
    return {
        "nvcc_found": True,
        "nvcc_version": evaluation.environment.cuda or "",
        "success": not failed,
        "command": "",
        "stdout": shortened(evaluation.log) if failed else "",
        "stderr": _error_text(evaluation) if failed else "",
        "exit_code": _CRASH if failed else 0,
    }


def _error_text(evaluation: Evaluation) -> str:
    return shortened(f"{verdict_line(evaluation).text}: {evaluation.message}")


def runs_of(job: JobStatus, score: ScoreValue | None) -> list[Json]:
    """Return the runs of an ended job; [] if it has not ended."""
    if job.evaluation is None:
        return []
    public = [phase for phase in phases(job.evaluation) if not phase.secret]
    runs = []
    for phase in phases(job.evaluation):
        run = _run(job.job, phase, seconds(score) if _scores(phase) else None)
        if phase.result is not None:
            run |= _public_details(job.evaluation, phase, is_last=phase == public[-1])
        runs.append(run)
    return runs


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


def _public_details(evaluation: Evaluation, phase: KernelBotRun, *, is_last: bool) -> Json:
    """Return the details of a public test or benchmark; the last phase has the log."""
    log = shortened(evaluation.log) if is_last else ""
    ending = diagnostics(evaluation, phase, stdout=log)
    built = compilation(evaluation)
    return {
        "result": dict(phase.result or {}),
        "diagnostics": ending if built is None else {**ending, "compilation": built},
    }


def seconds(score: ScoreValue | None) -> str | None:
    """Return a score in seconds, as a decimal text."""
    return None if score is None else format(Decimal(repr(score.time_ns)) / 10**9, "f")


def moment(at: datetime | None) -> str | None:
    """Return a time in KernelBot's format."""
    return None if at is None else at.isoformat()


LONGEST_LOG = 16_384
"""The most characters of a log; the other front ends show all of it."""


def plain(report: Report) -> str:
    """Return the report without its title, as lines."""
    return "\n".join(filter(None, (_block_text(block, fence="") for block in report.blocks)))


def markdown(report: Report) -> str:
    """Return the report as Markdown; a submission's output cannot end its code fence."""
    parts = [f"## {escaping.one_line(report.title)}"]
    parts += [_block_text(block, fence="~~~~") for block in report.blocks]
    return "\n\n".join(filter(None, parts))


def _block_text(block: Block, fence: str) -> str:
    match block:
        case Text(text):
            return escaping.clean(text).strip()
        case Table() | Chart():
            table = charts.as_table(block) if isinstance(block, Chart) else block
            return _fenced(table.title, "\n".join(escaping.table_lines(table)), fence)
        case Log(title, text):
            return _fenced(title, shortened(text), fence)
        case Link(text, url):
            return f"{escaping.one_line(text)}: {url}"
        case Attachment():
            return ""
        case _:
            assert_never(block)


def _fenced(title: str, text: str, fence: str) -> str:
    if not fence:
        return f"{title}:\n{text}"
    inside = text.replace("~", "\N{TILDE OPERATOR}") if fence in text else text
    return f"{title}\n{fence}\n{inside}\n{fence}"


def shortened(text: str) -> str:
    """Return a log without terminal control characters; only the last whole lines if it is long."""
    text = escaping.clean(text).strip("\n")
    if len(text) <= LONGEST_LOG:
        return text
    end = text[-LONGEST_LOG:].partition("\n")[2] or text[-LONGEST_LOG:]
    return f"[...] {len(text) - len(end):,} characters before this are left out\n{end}"


SUCCEEDED, FAILED, TIMED_OUT, HACKED = "succeeded", "failed", "timed_out", "hacked"


def state_of(status: SubmissionStatus) -> tuple[str, str | None]:
    """Return the state, and the error if there is one."""
    if status.exclusion is not None:
        return _excluded(status.exclusion)
    if not status.is_final:
        return "; ".join(progress_of(job) for job in status.jobs), None
    faults = [(job, fault) for job in status.jobs if (fault := _fault(job)) is not None]
    if not faults:
        return SUCCEEDED, None
    every_late = all(_is_late(job) for job, _ in faults)
    return TIMED_OUT if every_late else FAILED, "\n\n".join(fault for _, fault in faults)


def progress_of(job: JobStatus) -> str:
    """Return one job in a few words, such as `queued, position 3, about 2 min`."""
    return job_line(job).text.removeprefix(f"{job.job.gpu}: ")


def _excluded(exclusion: Exclusion) -> tuple[str, str]:
    """Return the state and error of an excluded submission; only a disqualification is `hacked`."""
    why = f": {exclusion.reason}" if exclusion.reason else ""
    kind = exclusion.kind
    word = HACKED if kind is ExclusionKind.DISQUALIFIED else kind.value
    return word, f"{kind}, so it is not ranked{why}"


def _fault(job: JobStatus) -> str | None:
    if job.job.state is JobState.CANCELLED:
        return f"it was {cancel_words(job.job)}"
    if job.evaluation is None:
        return plain(Report("", (job_line(job),)))
    if job.evaluation.verdict is Verdict.PASSED:
        return None
    return plain(evaluation_report(job.evaluation))


def _is_late(job: JobStatus) -> bool:
    return job.evaluation is not None and job.evaluation.verdict is Verdict.TIMED_OUT
