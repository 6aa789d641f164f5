"""What a trainer gets for one kernel, in the shape that KernelBench's environments read."""

from dataclasses import dataclass
from typing import Any, TypedDict

from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus, Evaluation
from runners.contract.verdict import Stage, Verdict
from runners.evaluator.failures import ErrorKind
from runners.evaluator.job import KernelJob

LOG_MOST = 4000
"""Characters of the candidate's own output that a result carries, from its end."""

_NOT_COMPILED = {Verdict.BUILD_FAILED, Verdict.INVALID_SUBMISSION}
_FORGED = {Verdict.TIMING_REJECTED, Verdict.DISALLOWED}
_HELD = {Verdict.AUDIT}
"""Right, but with a time that nobody should count."""
_MISTAKES = {Verdict.WRONG_ANSWER}


class KernelResult(TypedDict):
    """The twelve keys; times in milliseconds."""

    format_ok: bool
    """Whether there is a `ModelNew` to be called at all."""
    compiled: bool
    correctness: bool
    """Whether every trial was right, and every timed call too."""
    tests_passed: int
    tests_total: int
    speedup: float | None
    """The reference's time over the kernel's, by the same judge on the same GPU type."""
    runtime_ms: float | None
    baseline_runtime_ms: float | None
    cheated: bool
    """Whether a forged time or a broken rule of the sandbox was found; callers may add to it."""
    error_message: str | None
    code_length: int
    """Of the kernel's source, in characters."""
    metadata: dict[str, Any]
    """`error_kind`, `verdict`, `stage`, `timings`, `cache_hit` and KernelBench's own keys."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The reference's time in milliseconds, or why there is none."""

    runtime_ms: float | None = None
    error: str = ""
    kind: ErrorKind | None = None


def no_result(kernel_code: object, trials: int, kind: ErrorKind, error: Exception) -> KernelResult:
    """The result of a kernel of which nothing is known, since no evaluation came about."""
    name = type(error).__name__
    text = kernel_code if isinstance(kernel_code, str) else ""
    return KernelResult(
        format_ok="ModelNew" in text,
        compiled=False,
        correctness=False,
        tests_passed=0,
        tests_total=trials,
        speedup=None,
        runtime_ms=None,
        baseline_runtime_ms=None,
        cheated=False,
        error_message=f"{name}: {error}",
        code_length=len(text),
        metadata={"error_kind": kind.value, "exception": str(error), "exception_type": name},
    )


def result_of(job: KernelJob, evaluation: Evaluation, baseline: Baseline | None) -> KernelResult:
    """The result of an evaluation, with the reference's time beside it where one was asked for."""
    baseline = baseline or Baseline()
    runtime = _runtime_ms(evaluation)
    built = not _unbuilt(evaluation)
    speedup = None
    if runtime is not None and baseline.runtime_ms is not None:
        speedup = baseline.runtime_ms / runtime
    return KernelResult(
        format_ok=built or evaluation.verdict is not Verdict.INVALID_SUBMISSION,
        compiled=built,
        correctness=evaluation.verdict is Verdict.PASSED or evaluation.verdict in _HELD,
        tests_passed=_tests_passed(evaluation),
        tests_total=job.num_correct_trials,
        speedup=speedup,
        runtime_ms=runtime,
        baseline_runtime_ms=baseline.runtime_ms,
        cheated=evaluation.verdict in _FORGED,
        error_message=_error_message(evaluation) or baseline.error or None,
        code_length=len(job.kernel_code),
        metadata=_metadata(job, evaluation, baseline),
    )


def baseline_of(evaluation: Evaluation) -> Baseline:
    """What the evaluation of the reference itself gives."""
    runtime = _runtime_ms(evaluation)
    if runtime is not None:
        return Baseline(runtime)
    words = f"the reference could not be timed: {_error_message(evaluation)}"
    return Baseline(None, words, ErrorKind.REFERENCE)


def _unbuilt(evaluation: Evaluation) -> bool:
    if evaluation.stage is Stage.PREPARE:
        return True
    return evaluation.stage is Stage.BUILD and evaluation.verdict is not Verdict.PASSED


def _runtime_ms(evaluation: Evaluation) -> float | None:
    timed = [case.measurement for case in evaluation.cases if case.measurement is not None]
    if evaluation.verdict is not Verdict.PASSED or not timed:
        return None
    return timed[-1].time_ns / 1e6


def _tests(evaluation: Evaluation) -> list[CaseResult]:
    return [case for case in evaluation.cases if case.kind is CaseKind.TEST]


def _tests_passed(evaluation: Evaluation) -> int:
    return sum(case.status is CaseStatus.PASSED for case in _tests(evaluation))


def _error_kind(evaluation: Evaluation, baseline: Baseline) -> ErrorKind | None:
    match evaluation.verdict:
        case Verdict.PASSED:
            return baseline.kind
        case Verdict.TASK_ERROR:
            return ErrorKind.REFERENCE
        case _:
            return ErrorKind.KERNEL


def _error_message(evaluation: Evaluation) -> str | None:
    """What went wrong, for whoever mends the kernel; with the verdict where no exception tells."""
    if evaluation.verdict is Verdict.PASSED:
        return None
    if evaluation.verdict in {Verdict.CRASHED, Verdict.BUILD_FAILED} and evaluation.message:
        return evaluation.message
    words = evaluation.verdict.value.replace("_", " ")
    return f"{words}: {evaluation.message}" if evaluation.message else words


def _metadata(job: KernelJob, evaluation: Evaluation, baseline: Baseline) -> dict[str, Any]:
    kind = _error_kind(evaluation, baseline)
    environment = evaluation.environment
    passed, total = _tests_passed(evaluation), job.num_correct_trials
    found: dict[str, Any] = {
        "error_kind": kind.value if kind else None,
        "verdict": evaluation.verdict.value,
        "stage": evaluation.stage.value if evaluation.stage else None,
        "hardware": environment.cpu if environment.gpu_uuid is None else environment.gpu,
        "device": evaluation.gpu,
        "backend": job.backend,
        "precision": job.precision,
        "correctness_trials": f"({passed} / {total})",
        "log": evaluation.log[-LOG_MOST:],
        "harness_version": environment.harness_version,
        "timings": {
            "reference_load_s": evaluation.durations_s.get("inputs", 0.0),
            "modal_eval_s": evaluation.wall_s,
        },
    }
    if baseline.error:
        found["baseline_error"] = baseline.error
    if kind is ErrorKind.KERNEL:
        found[_key_of(evaluation)] = _error_message(evaluation)
    return found


def _key_of(evaluation: Evaluation) -> str:
    """Under which of KernelBench's keys the failure stands."""
    if evaluation.verdict in _NOT_COMPILED and _unbuilt(evaluation):
        return "compilation_error"
    return "correctness_issue" if evaluation.verdict in _MISTAKES else "runtime_error"
