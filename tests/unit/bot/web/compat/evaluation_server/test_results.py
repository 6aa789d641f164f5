from typing import Any

import pytest

from bot.web.compat.evaluation_server.results import NO_RUNTIME, result_of, stats_of
from runners.contract.evaluation import (
    CaseKind,
    CaseResult,
    CaseStatus,
    Environment,
    Evaluation,
    Isolation,
    Measurement,
    StopReason,
)
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.ioing import compare, evaluate

MACHINE = Environment(
    gpu="NVIDIA H200", gpu_uuid="GPU-1", python="3", cpu="EPYC", cores=2, platform="linux",
    harness_version="1", transport="vmm", cuda="13.0",
)  # fmt: skip


def measured(*ns: float) -> Measurement:
    return Measurement(
        time_ns=sorted(ns)[len(ns) // 2], half_width_ns=1, bound_ns=ns[0], resolution_ns=100,
        rounds=2, samples=(ns[:2], ns[2:]), stop_reason=StopReason.ROUND_CAP,
    )  # fmt: skip


def case(
    spec: str, kind: CaseKind = CaseKind.BENCHMARK, status: CaseStatus = CaseStatus.PASSED,
    found: Measurement | None = None,
) -> CaseResult:  # fmt: skip
    return CaseResult(spec=spec, kind=kind, status=status, measurement=found)


def evaluation(
    *cases: CaseResult,
    verdict: Verdict = Verdict.PASSED,
    stage: Stage | None = None,
    **more: Any,  # noqa: ANN401
) -> Evaluation:
    return Evaluation(
        request_id="r", verdict=verdict, stage=stage, mode=Mode.RANKED, task="t", gpu="H200",
        cases=cases, environment=MACHINE, isolation=Isolation(outer="none"), wall_s=1, **more,
    )  # fmt: skip


OWN = case("kernel: custom", found=measured(1000, 2000, 3000, 6000))
REF = case("kernel: reference", found=measured(4000, 6000, 6000, 8000))
TEST = case("kernel: custom; seed: 0", CaseKind.TEST)
FAILED = case("kernel: custom; seed: 1", CaseKind.TEST, CaseStatus.FAILED)


def test_statistics_are_those_of_the_samples_in_unrounded_milliseconds() -> None:
    found = stats_of(measured(1000, 2000, 3000, 6001))
    assert found["mean"] == pytest.approx(0.00300025, rel=1e-9)
    assert found["std"] == pytest.approx(0.0018712, rel=1e-4)
    assert (found["min"], found["max"], found["median"]) == (0.001, 0.006001, 0.0025)
    assert found["percentile_95"] == pytest.approx(0.00555085, rel=1e-9)
    assert found["percentile_99"] == pytest.approx(0.00591097, rel=1e-9)
    assert list(found) == list(NO_RUNTIME)


def test_a_time_is_never_nothing_on_the_judges_own_clock() -> None:
    assert stats_of(measured(10, -5000, 10, 10))["mean"] == 0.001
    claimed = measured(500, 500, 600, 600).model_copy(update={"claimed_ns": 550})
    assert stats_of(claimed)["min"] == 0.0005


def test_a_right_kernel_has_its_times_and_its_speedup() -> None:
    result = result_of(compare(), evaluation(TEST, REF, OWN))
    found = result["kernel_exec_result"]
    assert (found["compiled"], found["correctness"]) == (True, True)
    assert found["runtime"] == found["runtime_stats"]["mean"] == 0.003
    assert result["ref_runtime"]["mean"] == 0.006
    assert found["speedup"] == 2.0
    assert found["metadata"]["gpu_id"] == "GPU-1"
    assert found["metadata"]["timed_samples"] == 4
    assert None not in found.values()
    absent = {"compilation_error", "validation_error", "error_category"}
    assert not absent & found.keys()


def test_one_kernel_by_itself_has_no_reference() -> None:
    result = result_of(evaluate(), evaluation(TEST, OWN))
    assert "ref_runtime" not in result
    assert "speedup" not in result["kernel_exec_result"]


def test_a_time_that_is_nothing_gives_no_speedup() -> None:
    tiny = case("kernel: custom", found=measured(50, 60, 70, 80))
    found = result_of(compare(), evaluation(TEST, REF, tiny))["kernel_exec_result"]
    assert "speedup" not in found


@pytest.mark.parametrize("stage", [Stage.PREPARE, Stage.BUILD])
@pytest.mark.parametrize(("message", "log"), [("", ""), ("line 3", "Traceback ...")])
def test_what_does_not_compile_says_why(stage: Stage, message: str, log: str) -> None:
    failed = evaluation(verdict=Verdict.BUILD_FAILED, stage=stage, message=message, log=log)
    result = result_of(compare(), failed)
    found = result["kernel_exec_result"]
    assert (found["compiled"], found["correctness"], found["runtime"]) == (False, False, 0.0)
    text = found["compilation_error"]
    assert text.startswith("Compilation error:\n")
    assert message in text
    assert log in text
    assert len(text) > len("Compilation error:\n")
    assert found["error_category"] == "build_failed"
    assert result["ref_runtime"] == NO_RUNTIME


@pytest.mark.parametrize("verdict", [each for each in Verdict if each is not Verdict.PASSED])
def test_every_failure_is_told_and_none_but_an_audit_is_correct(verdict: Verdict) -> None:
    failed = evaluation(TEST, FAILED, verdict=verdict, stage=Stage.TEST)
    found = result_of(compare(), failed)["kernel_exec_result"]
    assert found["compiled"]
    assert found["correctness"] is (verdict is Verdict.AUDIT)
    assert "Trials passed: 1/2" in found["validation_error"]
    assert found["error_category"] == verdict.value
    assert "runtime_stats" not in found


def test_numbers_that_differ_are_told_as_ever() -> None:
    failed = evaluation(
        TEST,
        FAILED,
        verdict=Verdict.WRONG_ANSWER,
        stage=Stage.TEST,
        message="9 differ",
        log="noise",
    )
    text = result_of(compare(), failed)["kernel_exec_result"]["validation_error"]
    head = "Numerical outputs don't match within tolerance. Trials passed: 1/2."
    assert text == f"{head}\n9 differ"


def test_a_crash_names_its_trial() -> None:
    failed = evaluation(TEST, FAILED, verdict=Verdict.CRASHED, stage=Stage.TEST, message="boom")
    text = result_of(compare(), failed)["kernel_exec_result"]["validation_error"]
    assert text.startswith("Trial 2 failed. ")


def test_a_failure_of_the_reference_is_named_after_it() -> None:
    failed = evaluation(
        verdict=Verdict.TASK_ERROR, stage=Stage.PREPARE, message="the reference kernel: crashed: x"
    )
    found = result_of(compare(), failed)["kernel_exec_result"]
    assert found["error_category"] == "reference_error"
    assert "the reference kernel: crashed: x" in found["compilation_error"]


def test_the_references_time_is_told_even_where_the_kernel_fails_later() -> None:
    late = case("kernel: custom", status=CaseStatus.FAILED)
    failed = evaluation(TEST, REF, late, verdict=Verdict.TIMED_OUT, stage=Stage.TIMING)
    result = result_of(compare(), failed)
    assert result["ref_runtime"]["mean"] == 0.006
    assert result["kernel_exec_result"]["runtime"] == 0.0


def test_a_machine_without_a_gpu_is_named_too() -> None:
    plain = MACHINE.model_copy(update={"gpu_uuid": None})
    found = evaluation(TEST, OWN).model_copy(update={"gpu": "CPU", "environment": plain})
    metadata = result_of(evaluate(), found)["kernel_exec_result"]["metadata"]
    assert (metadata["gpu_id"], metadata["hardware"]) == ("cpu", "EPYC")
