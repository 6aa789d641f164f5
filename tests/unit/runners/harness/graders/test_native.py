from runners.contract.evaluation import CaseKind, CaseStatus, Progress
from runners.contract.task import Mode, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.graders.native import Grade, grade
from runners.harness.ruling import Ruling
from tests.doubles.judging import SORT, SORTED, make_judging, make_sort_task
from tests.unit.runners.harness.conftest import Sit, progress, sit, template

__all__ = ["progress", "sit", "template"]
TWO = tuple(Workload(args={"size": size, "seed": 1}) for size in (10, 20))


def test_a_fresh_grade_has_passed_and_a_failed_one_says_where() -> None:
    result = Grade()
    assert result.passed

    result.fail(Stage.TEST, Ruling(Verdict.CRASHED, "it fell"))

    assert (result.passed, result.verdict, result.stage) == (False, Verdict.CRASHED, Stage.TEST)


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
