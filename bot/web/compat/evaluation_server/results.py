"""An evaluation in the format of the evaluation server's clients; times in milliseconds."""

from collections.abc import Sequence
from statistics import fmean, median, pstdev
from typing import Any, TypedDict

from bot.domain.scoring import judged
from bot.web.compat.evaluation_server import device_metrics, requests
from runners.contract.evaluation import CPU, CaseKind, CaseStatus, Evaluation, Measurement
from runners.contract.io_contract import DRAWN, KERNEL, REFERENCE_FAULT, UNCOUNTED, Side
from runners.contract.task import Workload
from runners.contract.verdict import Stage, Verdict

LOG_MOST = 8000
"""The last characters of the output of kernel and compiler that an error includes."""
REFERENCE_ERROR = "reference_error"
"""The category of a failure of the reference, not of the judged kernel."""
LEAST_NS = 1000.0
"""The least time that the judge's own clock can distinguish from zero."""
_NS_PER_MS = 1e6
_RIGHT = {Verdict.PASSED, Verdict.AUDIT}
"""With `audit` the outputs are right, but the time is not shown."""
_UNBUILT = {Stage.PREPARE, Stage.BUILD}
_HEADS = {
    Verdict.WRONG_ANSWER: "Numerical outputs don't match within tolerance",
    Verdict.TIMED_OUT: "Timed out",
}


class RuntimeStats(TypedDict):
    """Statistics of all timed samples, in milliseconds; `std` is the population's."""

    mean: float
    std: float
    min: float
    max: float
    median: float
    percentile_95: float
    percentile_99: float


class KernelResultBody(TypedDict, total=False):
    """The judge's part of a response; the reference's times are zeros if there are none."""

    kernel_exec_result: dict[str, Any]
    ref_runtime: RuntimeStats


NO_RUNTIME = RuntimeStats(
    mean=0.0, std=0.0, min=0.0, max=0.0, median=0.0, percentile_95=0.0, percentile_99=0.0
)


def result_of(request: requests.Request, evaluation: Evaluation) -> KernelResultBody:
    """Return the results of the judged kernel and its reference, if any."""
    own, other = (_measured(evaluation, side) for side in (Side.CUSTOM, Side.REFERENCE))
    result = KernelResultBody(kernel_exec_result=_executed(request, evaluation, own, other))
    if isinstance(request, requests.CompareRequest):
        result["ref_runtime"] = NO_RUNTIME if other is None else stats_of(other)
    return result


def stats_of(measured: Measurement) -> RuntimeStats:
    """Return the seven numbers of a measurement, from its samples.

    If the published time is by the judge's own clock, a sample is the difference of two windows and
    may be negative. It then counts as `LEAST_NS`, so that no time is 0.
    """
    least = LEAST_NS if measured.claimed_ns is None else 0.0
    samples = sorted(max(least, ns) / _NS_PER_MS for each in measured.samples for ns in each)
    return RuntimeStats(
        mean=fmean(samples),
        std=pstdev(samples),
        min=samples[0],
        max=samples[-1],
        median=median(samples),
        percentile_95=_percentile(samples, 0.95),
        percentile_99=_percentile(samples, 0.99),
    )


def _percentile(ordered: Sequence[float], part: float) -> float:
    """Return a percentile, interpolated linearly between two samples."""
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _executed(
    request: requests.Request,
    evaluation: Evaluation,
    own: Measurement | None,
    other: Measurement | None,
) -> dict[str, Any]:
    compiled = evaluation.verdict in _RIGHT or evaluation.stage not in _UNBUILT
    stats = None if own is None else stats_of(own)
    result = {
        "compiled": compiled,
        "correctness": compiled and evaluation.verdict in _RIGHT,
        "runtime": 0.0 if stats is None else stats["mean"],
        "metadata": _metadata(request, evaluation, own),
        "runtime_stats": stats,
        "compilation_error": None if compiled else f"Compilation error:\n{_error_text(evaluation)}",
        "validation_error": _validation_error(evaluation) if compiled else None,
        "error_category": category_of(evaluation),
        "speedup": _speedup(own, other),
    }
    return {key: value for key, value in result.items() if value is not None}


def category_of(evaluation: Evaluation) -> str | None:
    """Return a failure's category, None for a pass: the judge's verdict, or `REFERENCE_ERROR`."""
    if evaluation.verdict is Verdict.PASSED:
        return None
    if evaluation.verdict is Verdict.TASK_ERROR and evaluation.message.startswith(REFERENCE_FAULT):
        return REFERENCE_ERROR
    return evaluation.verdict.value


def _validation_error(evaluation: Evaluation) -> str | None:
    if evaluation.verdict is Verdict.PASSED:
        return None
    tests = [case for case in evaluation.cases if case.kind is CaseKind.TEST]
    passed = sum(case.status is CaseStatus.PASSED for case in tests)
    head = _HEADS.get(evaluation.verdict, "Trial failed")
    if evaluation.stage is Stage.TEST and evaluation.verdict is not Verdict.WRONG_ANSWER:
        head = f"Trial {passed + 1} failed"
    trials = f"Trials passed: {passed}/{len(tests)}."
    return f"{head}. {trials}\n{_error_text(evaluation)}"


def _error_text(evaluation: Evaluation) -> str:
    """Return the message, followed by the output if that says more."""
    message = evaluation.message or f"{evaluation.verdict.value} without a message"
    if evaluation.verdict is Verdict.WRONG_ANSWER or not evaluation.log.strip():
        return message
    return f"{message}\n{evaluation.log.strip()[-LOG_MOST:]}"


def _measured(evaluation: Evaluation, side: Side) -> Measurement | None:
    spec = Workload(args={KERNEL: side.value}).spec
    own = (case.measurement for case in evaluation.cases if case.spec == spec)
    return next((each for each in own if each is not None), None)


def _speedup(own: Measurement | None, other: Measurement | None) -> float | None:
    """Return the speedup by the judge's clock; None if a time is indistinguishable from zero."""
    if own is None or other is None:
        return None
    own_ns, other_ns = judged(own).time_ns, judged(other).time_ns
    if own_ns <= own.resolution_ns or other_ns <= other.resolution_ns:
        return None
    return other_ns / own_ns


def _log_note(evaluation: Evaluation, begin: str) -> str | None:
    """Return what follows `begin` in the judge's lines, which end the log, after the kernel's."""
    parts = evaluation.log.rpartition(begin)
    return parts[2].partition("\n")[0].strip()[:LOG_MOST] or None if parts[1] else None


def _metadata(
    request: requests.Request, evaluation: Evaluation, measured: Measurement | None
) -> dict[str, Any]:
    machine = evaluation.environment
    metadata: dict[str, Any] = {
        "gpu_id": machine.gpu_uuid or evaluation.gpu.lower(),
        "hardware": machine.cpu if evaluation.gpu == CPU else machine.gpu,
        "num_trials": request.num_trials,
        "inputs": _log_note(evaluation, DRAWN),
        "verdict": evaluation.verdict.value,
        "judge": machine.harness_version,
        "device_metrics": device_metrics.device_metrics_of(evaluation) or None,
        "device_metrics_error": _log_note(evaluation, UNCOUNTED)
        if request.device_metrics
        else None,
        **{key: getattr(machine, key) for key in ("driver", "cuda", "torch", "triton")},
    }
    if measured is not None:
        metadata |= {
            "profiling_method": f"{evaluation.environment.timing.value} clock, fresh inputs",
            "timed_samples": sum(map(len, measured.samples)),
            "rounds": measured.rounds,
            "stop_reason": measured.stop_reason.value,
            "half_width": measured.half_width_ns / _NS_PER_MS,
            "resolution": measured.resolution_ns / _NS_PER_MS,
        }
    return {key: value for key, value in metadata.items() if value is not None}
