"""The result of one kernel, and scores over many: fast_p, mean speed-up, pass@k."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, TypedDict

from runners.contract.evaluation import CaseKind, CaseStatus, Evaluation, Measurement
from runners.contract.verdict import Stage, Verdict
from runners.evaluator.config import ErrorKind
from runners.evaluator.job import KernelJob


def fast_p(results: Sequence[Mapping[str, Any]], p: float) -> float:
    """The fraction of results that are right and more than `p` times as fast as the reference.

    The comparison is strict, as in KernelBench. With `p` 0 every right result with a speed-up
    counts. ValueError without results.
    """
    if not results:
        raise ValueError("fast_p of no results")
    return sum(_speedup_of(each) > p for each in results) / len(results)


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of the values that are not None; None if there are none."""
    logs = [math.log(value) for value in values if value is not None]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def pass_at_k(attempts: int, right: int, k: int) -> float:
    """The unbiased estimate of pass@k: at least one of `k` attempts is right (Chen et al. 2021).

    ValueError if `right` is more than `attempts`, or `k` is not from 1 to `attempts`.
    """
    if not 0 <= right <= attempts or not 1 <= k <= attempts:
        raise ValueError(f"pass@{k} is not defined for {attempts} attempts with {right} right ones")
    if attempts - right < k:
        return 1.0
    return 1.0 - math.comb(attempts - right, k) / math.comb(attempts, k)


def _speedup_of(result: Mapping[str, Any]) -> float:
    found = result["speedup"]
    return float(found) if result["correctness"] and found is not None else 0.0


LOG_MOST = 4000
"""The most characters of a result's `log`, which is the end of the candidate's output."""

_NOT_COMPILED = {Verdict.BUILD_FAILED, Verdict.INVALID_SUBMISSION}
_FORGED = {Verdict.TIMING_REJECTED, Verdict.DISALLOWED}
_RIGHT = {Verdict.PASSED, Verdict.AUDIT}
"""Verdicts with right outputs; with AUDIT the time must not count."""


class KernelResult(TypedDict):
    """The result of one kernel; times in milliseconds."""

    format_ok: bool
    """Whether there is a class `ModelNew` or a function `forward` to call."""
    compiled: bool
    correctness: bool
    """Whether the output of every trial and of every timed call was right."""
    tests_passed: int
    tests_total: int
    speedup: float | None
    """The reference's time divided by the kernel's on the same GPU type; None if one of them is
    missing or the judge cannot distinguish it from zero."""
    runtime_ms: float | None
    baseline_runtime_ms: float | None
    cheated: bool
    """Whether the judge found a forged time or a broken rule of the sandbox; callers may set it."""
    error_message: str | None
    code_length: int
    """The number of characters of the kernel's source."""
    metadata: dict[str, Any]
    """`error_kind`, `verdict`, `stage`, `timings`, `cache_hit` and KernelBench's own keys."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The reference's time, or why there is none."""

    measured: Measurement | None = None
    error: str = ""
    kind: ErrorKind | None = None


def no_result(kernel_code: object, trials: int, kind: ErrorKind, error: Exception) -> KernelResult:
    """The result of a kernel without an evaluation."""
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
    """The result of an evaluation, with the reference's time if requested."""
    baseline = baseline or Baseline()
    runtime = _measured(evaluation)
    built = not _unbuilt(evaluation)
    return KernelResult(
        format_ok=built or evaluation.verdict is not Verdict.INVALID_SUBMISSION,
        compiled=built,
        correctness=evaluation.verdict in _RIGHT,
        tests_passed=_tests_passed(evaluation),
        tests_total=job.num_correct_trials,
        speedup=_speedup(baseline.measured, runtime),
        runtime_ms=_milliseconds(runtime),
        baseline_runtime_ms=_milliseconds(baseline.measured),
        cheated=evaluation.verdict in _FORGED,
        error_message=_error_message(evaluation) or baseline.error or None,
        code_length=len(job.kernel_code),
        metadata=_metadata(job, evaluation, baseline),
    )


def baseline_of(evaluation: Evaluation) -> Baseline:
    """The baseline from the reference's own evaluation."""
    measured = _measured(evaluation)
    if measured is not None:
        return Baseline(measured)
    message = f"the reference could not be timed: {_error_message(evaluation)}"
    return Baseline(None, message, ErrorKind.REFERENCE)


def _unbuilt(evaluation: Evaluation) -> bool:
    if evaluation.stage is Stage.PREPARE:
        return True
    return evaluation.stage is Stage.BUILD and evaluation.verdict is not Verdict.PASSED


def _measured(evaluation: Evaluation) -> Measurement | None:
    timed = [case.measurement for case in evaluation.cases if case.measurement is not None]
    return timed[-1] if timed and evaluation.verdict is Verdict.PASSED else None


def _milliseconds(measured: Measurement | None) -> float | None:
    return None if measured is None else measured.time_ns / 1e6


def _speedup(baseline: Measurement | None, measured: Measurement | None) -> float | None:
    """The ratio of two times; None if one of them cannot be distinguished from zero."""
    if baseline is None or measured is None:
        return None
    if any(each.time_ns <= each.resolution_ns for each in (baseline, measured)):
        return None
    return baseline.time_ns / measured.time_ns


def _lower_bound(measured: Measurement) -> float:
    return measured.time_ns - _uncertainty(measured)


def _uncertainty(measured: Measurement) -> float:
    """The uncertainty of a time in ns: its half-width plus the judge's resolution."""
    return measured.half_width_ns + measured.resolution_ns


def _statistics(measured: Measurement) -> dict[str, Any]:
    """A time in KernelBench's statistics format, with its uncertainty."""
    samples = [sample / 1e6 for each in measured.samples for sample in each]
    return {
        "mean": fmean(samples),
        "std": stdev(samples) if len(samples) > 1 else 0.0,
        "min": min(samples),
        "max": max(samples),
        "num_trials": len(samples),
        "half_width": measured.half_width_ns / 1e6,
        "resolution": measured.resolution_ns / 1e6,
    }


def _speedup_range(baseline: Measurement, measured: Measurement) -> list[float | None]:
    """The least and greatest speed-up within the uncertainty of both times; None is no bound."""
    fastest = _lower_bound(measured)
    low = max(0.0, _lower_bound(baseline)) / (measured.time_ns + _uncertainty(measured))
    high = (baseline.time_ns + _uncertainty(baseline)) / fastest if fastest > 0 else None
    return [low, high]


def _tests_passed(evaluation: Evaluation) -> int:
    tests = (case for case in evaluation.cases if case.kind is CaseKind.TEST)
    return sum(case.status is CaseStatus.PASSED for case in tests)


def _error_kind(evaluation: Evaluation, baseline: Baseline) -> ErrorKind | None:
    match evaluation.verdict:
        case Verdict.PASSED:
            return baseline.kind
        case Verdict.TASK_ERROR:
            return ErrorKind.REFERENCE
        case _:
            return ErrorKind.KERNEL


def _error_message(evaluation: Evaluation) -> str | None:
    """The kernel's error, with the verdict if there is no exception text."""
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
    found |= _times(_measured(evaluation), baseline)
    if kind is ErrorKind.KERNEL:
        found[_failure_key(evaluation)] = _error_message(evaluation)
    return found


def _times(measured: Measurement | None, baseline: Baseline) -> dict[str, Any]:
    found: dict[str, Any] = {"baseline_error": baseline.error} if baseline.error else {}
    if measured is not None:
        found["runtime_stats"] = _statistics(measured)
    if baseline.measured is not None:
        found["ref_runtime_stats"] = _statistics(baseline.measured)
    if measured is not None and baseline.measured is not None:
        found["speedup_range"] = _speedup_range(baseline.measured, measured)
    return found


def _failure_key(evaluation: Evaluation) -> str:
    """KernelBench's key for the failure."""
    if evaluation.verdict is Verdict.WRONG_ANSWER:
        return "correctness_issue"
    not_compiled = evaluation.verdict in _NOT_COMPILED and _unbuilt(evaluation)
    return "compilation_error" if not_compiled else "runtime_error"
