import json

import pytest

from runners.backends import fake
from runners.contract.evaluation import Measurement, StopReason
from runners.contract.runner import Runner
from runners.evaluator import EvaluatorConfig, KernelResult
from runners.evaluator.config import ErrorKind
from runners.evaluator.job import kernel_request, read_job
from runners.evaluator.pool import run_evaluation
from runners.evaluator.result import Baseline, baseline_of, no_result, result_of
from tests.doubles.kernels import make_job, told

KEYS = [
    "format_ok", "compiled", "correctness", "tests_passed", "tests_total", "speedup", "runtime_ms",
    "baseline_runtime_ms", "cheated", "error_message", "code_length", "metadata",
]  # fmt: skip


@pytest.fixture
def runner() -> Runner:
    return fake.create()


def measured(time_ns: float, unsure_ns: float = 0.0) -> Measurement:
    return Measurement(
        time_ns=time_ns,
        half_width_ns=unsure_ns / 2,
        bound_ns=time_ns,
        resolution_ns=unsure_ns / 2,
        rounds=2,
        samples=((time_ns, time_ns), (time_ns + 2, time_ns + 2)),
        stop_reason=StopReason.ROUND_CAP,
    )


async def judged(runner: Runner, directive: str, baseline: Baseline | None = None) -> KernelResult:
    job = read_job(make_job(told(directive), measure_performance=True))
    request = kernel_request(EvaluatorConfig(), job, "CPU")
    return result_of(job, await run_evaluation(runner, request, 1), baseline)


async def test_a_right_kernel_has_every_key_in_order_and_a_speed_up(runner: Runner) -> None:
    found = await judged(runner, "time_us=20", Baseline(measured(50_000)))
    assert list(found) == KEYS
    assert found["speedup"] == pytest.approx(2.5)
    assert found["runtime_ms"] == pytest.approx(0.02)
    assert found["baseline_runtime_ms"] == 0.05
    assert (found["format_ok"], found["compiled"], found["correctness"]) == (True, True, True)
    assert (found["tests_passed"], found["tests_total"]) == (2, 2)
    assert found["error_message"] is None
    assert found["metadata"]["error_kind"] is None
    assert found["code_length"] == len(told("time_us=20"))


@pytest.mark.parametrize(
    ("directive", "flags", "kind", "key"),
    [
        ("verdict=build_failed", (True, False, False, False), "kernel", "compilation_error"),
        ("verdict=invalid_submission", (False, False, False, False), "kernel", "compilation_error"),
        ("verdict=wrong_answer", (True, True, False, False), "kernel", "correctness_issue"),
        ("verdict=crashed", (True, True, False, False), "kernel", "runtime_error"),
        ("verdict=timed_out", (True, True, False, False), "kernel", "runtime_error"),
        ("verdict=timing_rejected", (True, True, False, True), "kernel", "runtime_error"),
        ("verdict=disallowed", (True, True, False, True), "kernel", "runtime_error"),
        ("verdict=audit", (True, True, True, False), "kernel", "runtime_error"),
        ("verdict=task_error", (True, False, False, False), "reference", "error_kind"),
    ],
)
async def test_each_verdict_has_its_flags(
    runner: Runner, directive: str, flags: tuple[bool, ...], kind: str, key: str
) -> None:
    found = await judged(runner, f"{directive} message=it_was_so", Baseline(measured(1e6)))
    names = ("format_ok", "compiled", "correctness", "cheated")
    assert tuple(found[name] for name in names) == flags  # type: ignore[literal-required]
    assert found["metadata"]["error_kind"] == kind
    assert found["metadata"][key]
    assert found["speedup"] is None
    assert found["runtime_ms"] is None
    assert "it was so" in (found["error_message"] or "")


async def test_how_sure_a_speed_up_is_stands_beside_it(runner: Runner) -> None:
    found = await judged(runner, "time_us=20", Baseline(measured(50_000, 10_000)))
    low, high = found["metadata"]["speedup_range"]
    assert (low, high) == (pytest.approx(40 / 20.22), pytest.approx(60 / 19.78))
    assert found["metadata"]["runtime_stats"]["num_trials"] == 3 * 34
    assert found["metadata"]["ref_runtime_stats"]["mean"] == pytest.approx(0.050001)
    json.dumps(found, allow_nan=False)


async def test_a_time_that_may_be_nothing_gives_no_speed_up(runner: Runner) -> None:
    found = await judged(runner, "time_us=20", Baseline(measured(50_000, 100_000)))
    assert found["speedup"] is None
    assert found["metadata"]["speedup_range"][0] == 0
    assert found["baseline_runtime_ms"] == 0.05


async def test_what_was_right_before_the_fault_is_counted(runner: Runner) -> None:
    assert (await judged(runner, "verdict=wrong_answer"))["tests_passed"] == 0
    late = await judged(runner, "verdict=wrong_answer stage=timing")
    assert (late["tests_passed"], late["correctness"]) == (2, False)


async def test_a_kernel_is_not_blamed_for_a_reference_without_a_time(runner: Runner) -> None:
    found = await judged(runner, "", Baseline(None, "no time", ErrorKind.REFERENCE))
    assert found["correctness"] is True
    assert (found["speedup"], found["error_message"]) == (None, "no time")
    assert found["metadata"]["error_kind"] == "reference"


async def test_a_reference_that_fails_has_no_time(runner: Runner) -> None:
    job = read_job(make_job(told("verdict=crashed message=oh"), measure_performance=True))
    request = kernel_request(EvaluatorConfig(), job, "CPU")
    found = baseline_of(await run_evaluation(runner, request, 1))
    assert (found.measured, found.kind) == (None, ErrorKind.REFERENCE)
    assert found.error.endswith("could not be timed: oh")


def test_where_no_evaluation_came_about_nothing_is_said_of_the_kernel() -> None:
    found = no_result("class ModelNew: ...", 5, ErrorKind.INFRASTRUCTURE, OSError("gone"))
    assert list(found) == KEYS
    assert (found["format_ok"], found["correctness"], found["tests_total"]) == (True, False, 5)
    assert found["metadata"] == {
        "error_kind": "infrastructure", "exception": "gone", "exception_type": "OSError",
    }  # fmt: skip
