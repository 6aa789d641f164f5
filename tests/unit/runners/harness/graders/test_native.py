from types import SimpleNamespace

import pytest

from runners.contract.evaluation import CaseKind, CaseStatus, Measurement, Progress, StopReason
from runners.contract.task import Mode, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.graders import native
from runners.harness.graders.native import grade
from runners.harness.session import Session
from runners.harness.timing import Allowance
from tests.doubles.judging import SORT, SORTED, make_judging, make_sort_task
from tests.unit.runners.harness.conftest import Sit, progress, sit, template

__all__ = ["progress", "sit", "template"]
MEASURED = Measurement(
    time_ns=1.0, half_width_ns=0.0, bound_ns=1.0, resolution_ns=0.0, rounds=1, samples=((1.0,),),
    stop_reason=StopReason.ROUND_CAP,
)  # fmt: skip
TWO = tuple(Workload(args={"size": size, "seed": 1}) for size in (10, 20))


def test_a_test_run_has_tests_alone(sit: Sit, progress: list[Progress]) -> None:
    result = grade(sit(make_judging(SORTED, task=make_sort_task(tests=TWO))))

    assert [case.kind for case in result.cases] == [CaseKind.TEST] * 2
    assert [(told.stage, told.done) for told in progress] == [
        (Stage.BUILD, 0), (Stage.TEST, 1), (Stage.TEST, 2),
    ]  # fmt: skip


def test_a_failing_build_skips_every_test(sit: Sit) -> None:
    result = grade(sit(make_judging("x = (", task=make_sort_task(tests=TWO))))

    assert (result.verdict, result.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)
    assert {case.status for case in result.cases} == {CaseStatus.SKIPPED}


def test_a_failing_build_in_a_benchmark_run_is_the_builds_failure(sit: Sit) -> None:
    result = grade(sit(make_judging("x = (", Mode.BENCHMARK)))

    assert (result.verdict, result.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)


def test_a_failing_test_names_its_case_and_skips_the_benchmarks(sit: Sit) -> None:
    result = grade(sit(make_judging("def custom_kernel(d): return d[1].zero_()", Mode.RANKED)))

    assert [case.status for case in result.cases] == [CaseStatus.FAILED, CaseStatus.SKIPPED]
    assert result.cases[0].message == "mismatch"


def test_the_tests_share_one_time_limit(sit: Sit) -> None:
    slow = SORTED.replace("    return", "    import time; time.sleep(0.7)\n    return")
    result = grade(sit(make_judging(slow, task=make_sort_task(SORT, tests=TWO, test_timeout=1))))

    assert result.verdict is Verdict.TIMED_OUT
    assert [case.status for case in result.cases] == [CaseStatus.PASSED, CaseStatus.FAILED]


def test_a_profile_run_times_and_then_profiles_each_benchmark(sit: Sit) -> None:
    result = grade(sit(make_judging(SORTED, Mode.PROFILE)))

    assert result.passed, result.message
    assert CaseKind.PROFILE in {case.kind for case in result.cases}


def test_each_benchmark_has_its_share_of_the_time_that_is_left(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[float, float]] = []

    def timing(session: Session, workload: Workload, allowed: Allowance, report: object) -> object:
        given.append((allowed.deadline.remaining, allowed.share.remaining))
        return SimpleNamespace(measure=lambda: MEASURED)

    monkeypatch.setattr(native, "Stopwatch", timing)
    task = make_sort_task(tests=(), benchmarks=TWO, benchmark_timeout=20)
    grade(sit(make_judging(SORTED, Mode.BENCHMARK, task=task)))

    assert [pytest.approx(each, abs=1) for each in ((20, 10), (20, 20))] == given


def test_a_profile_ends_in_time(sit: Sit, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[float] = []
    monkeypatch.setattr(native, "_run_benchmarks", lambda *_: None)
    monkeypatch.setattr(native, "profile", lambda *args: left.append(args[2].remaining))
    grade(sit(make_judging(SORTED, Mode.PROFILE, task=make_sort_task(benchmark_timeout=20))))

    assert left == [pytest.approx(20, abs=1)]
