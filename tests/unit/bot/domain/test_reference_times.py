"""Tests of what is a task's reference, and of how it becomes a candidate."""

import pytest

from bot.domain.job import JobState
from bot.domain.noise import noise_of
from bot.domain.reference_times import (
    at_usual_speed,
    failure,
    machine_of,
    measured_ns,
    reference_source,
    scaled,
)
from runners.contract.comparison import Ratio
from runners.contract.evaluation import CaseKind, CaseResult, Environment, StopReason
from runners.contract.task import Grader, TaskFormat
from tests.doubles.factories import make_case, make_evaluation, make_measurement, make_task

OURS = "def generate_input(): ...\ndef ref_kernel(data): ...\n"
KERNELBOT = "def ref_kernel(data): ...\ncheck_implementation = make_match_reference(ref_kernel)\n"
NAMED = """
def add(data): ...
check_implementation = make_match_reference(add, rtol=1e-3)
"""


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (OURS, "ref_kernel"),
        (KERNELBOT, "ref_kernel"),
        (NAMED, "add"),
        ("from kernels import ref_kernel\n", "ref_kernel"),
    ],
)
def test_the_function_is_found_by_its_name_or_by_the_check_made_of_it(code: str, name: str) -> None:
    task = make_task(files={"reference.py": code})
    assert reference_source(task) == f"from reference import {name} as custom_kernel\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"files": {"reference.py": "def check_implementation(data, output): ...\n"}},
        {"files": {"reference.py": "check_implementation = make_match_reference(lost)\n"}},
        {"files": {"reference.py": "check_implementation = make_match_reference(lambda d: d)\n"}},
        {"files": {"reference.py": "def ref_kernel(:\n"}},
        {"files": {"eval.py": OURS}},
        {"files": {"reference.py": OURS}, "grader": Grader.POPCORN},
        {"files": {"reference.py": OURS}, "lang": "cu"},
    ],
)
def test_a_task_without_such_a_function_has_no_reference(changes: dict[str, object]) -> None:
    assert reference_source(make_task(**changes)) is None


def test_the_reference_of_a_kernelbench_problem_is_its_model() -> None:
    task = make_task(files={"reference.py": ""}, format=TaskFormat.KERNELBENCH)
    assert reference_source(task) == "from reference import Model as ModelNew\n"


def test_its_candidate_alone_sees_the_whole_task() -> None:
    files = {"reference.py": OURS, "task.py": "", "sizes.py": "SIZE = 3\n"}
    task = make_task(files=files, shared_files=("task.py",))
    assert set(task.with_all_files_shared.shared_files) == set(files)
    assert task.shared_files == ("task.py",)


@pytest.mark.parametrize(
    ("state", "error", "verdict", "message", "words"),
    [
        (JobState.QUEUED, "boom", None, None, ""),
        (JobState.RUNNING, None, None, None, ""),
        (JobState.SUCCEEDED, None, "crashed", "exit 1", "crashed: exit 1"),
        (JobState.SUCCEEDED, None, "timed_out", "", "timed_out"),
        (JobState.SUCCEEDED, None, "passed", "", "it passed, but no usable time was measured"),
        (JobState.FAILED, "no runner", None, None, "no runner"),
        (JobState.FAILED, None, None, None, "given up"),
        (JobState.CANCELLED, None, None, None, "cancelled"),
    ],
)
def test_only_what_has_ended_without_a_time_has_failed(
    state: JobState, error: str | None, verdict: str | None, message: str | None, words: str
) -> None:
    assert failure(state, error, verdict, message) == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpu": "CPU", "cpu": "EPYC 9654"}, "EPYC 9654"),
        ({"gpu": "NVIDIA H200", "driver": "570.86"}, "NVIDIA H200, driver 570.86"),
    ],
)
def test_the_machine_is_named_in_a_few_words(changes: dict[str, str], words: str) -> None:
    usual = dict.fromkeys(("python", "cpu", "platform", "harness_version", "transport"), "x")
    assert machine_of(Environment.model_validate({**usual, "cores": 1, **changes})) == words


def timed(time_ns: float, ratio: float | None) -> CaseResult:
    found = None if ratio is None else Ratio(ratio=ratio, half_width=0.1 * ratio, rounds=5)
    measured = make_measurement(time_ns, 0.5 * time_ns).model_copy(update={"vs_reference": found})
    return make_case(CaseKind.BENCHMARK, measurement=measured)


def test_a_run_at_another_speed_of_the_machine_has_the_same_time() -> None:
    first, slow = (
        make_evaluation(cases=(make_case(), timed(1e6 * slow, 0.5), timed(3e6 * slow, 1.5)))
        for slow in (1.0, 1.7)
    )
    usual = measured_ns(first)
    assert usual == (2e6, 2e6)
    found = at_usual_speed(slow, usual)
    _, one, three = (each.measurement for each in found.cases)
    assert one is not None
    assert three is not None
    assert (one.time_ns, one.bound_ns, three.time_ns) == pytest.approx((1e6, 1e6, 3e6))
    assert one.half_width_ns == pytest.approx(0.1e6)  # that of the ratio
    assert one.samples[0] == pytest.approx((1e6,))
    assert (one.slowdown, noise_of(one)) == pytest.approx((1.7, 0.1))


def test_a_slow_kernel_keeps_the_noise_of_its_own_time() -> None:
    """With two rounds the interval of the ratio is many times wider than its calls differ."""
    found = timed(1e8, 100.0).measurement
    assert found is not None
    slow = found.model_copy(update={"stop_reason": StopReason.SLOW, "half_width_ns": 1e6})
    assert scaled(slow, 2.0).half_width_ns == 0.5e6


def test_a_reference_that_was_not_timed_in_every_benchmark_has_no_times() -> None:
    assert measured_ns(make_evaluation(cases=(timed(1e6, 0.5), timed(3e6, None)))) == ()
