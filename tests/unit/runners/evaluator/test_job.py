from dataclasses import replace
from typing import Any

import pytest

from runners.contract.task import Mode, TaskFormat
from runners.evaluator import EvaluatorConfig
from runners.evaluator.config import JobError
from runners.evaluator.job import (
    baseline_job,
    baseline_request,
    cache_key,
    kernel_request,
    read_job,
)
from tests.doubles.kernels import LINEAR, RIGHT, make_job

CONFIG = EvaluatorConfig(secret=b"k" * 32)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ref_code": None}, "ref_code"),
        ({"kernel_code": ""}, "kernel_code"),
        ({"kernel_code": "x\ud800"}, "kernel_code"),
        ({"precision": "fp8"}, "precision"),
        ({"backend": "numpy"}, "backend"),
        ({"num_correct_trials": 0}, "num_correct_trials"),
        ({"num_perf_trials": "9"}, "num_perf_trials"),
    ],
)
def test_a_job_that_is_none_is_refused_by_the_key(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(JobError, match=words):
        read_job(make_job(**changes))


def test_a_job_without_a_source_is_refused() -> None:
    with pytest.raises(JobError, match="kernel_code: Field required"):
        read_job({"ref_code": LINEAR})


def test_keys_that_mean_nothing_here_are_passed_over() -> None:
    assert read_job(make_job(level=1, problem_id=3)) == read_job(make_job())


def test_everything_that_makes_two_evaluations_differ_is_in_their_name() -> None:
    job = read_job(make_job())
    names = {cache_key(CONFIG, job, "H100", "1"), cache_key(CONFIG, job, "A100", "1")}
    names.add(cache_key(CONFIG, job, "H100", "2"))
    for changed in (
        {"kernel_code": RIGHT + "#"}, {"ref_code": LINEAR + "#"}, {"backend": "cuda"},
        {"num_correct_trials": 3}, {"measure_performance": True}, {"num_perf_trials": 7},
        {"precision": "bf16"},
    ):  # fmt: skip
        names.add(cache_key(CONFIG, read_job(make_job(**changed)), "H100", "1"))
    for config in (
        replace(CONFIG, timeout=9), replace(CONFIG, rounds=2), replace(CONFIG, secret=b"x" * 32),
        replace(CONFIG, limits=CONFIG.limits.model_copy(update={"output": 1 << 10})),
    ):  # fmt: skip
        names.add(cache_key(config, job, "H100", "1"))
    assert len(names) == 3 + 7 + 4
    assert cache_key(CONFIG, job, "H100", "1") in names


def test_a_timeout_with_a_fraction_is_rounded_up() -> None:
    for timeout, limit in ((180.0, 180), (59.5, 60)):
        task = kernel_request(replace(CONFIG, timeout=timeout), read_job(make_job()), "CPU").task
        assert (task.test_timeout, task.ranked_timeout) == (limit, limit)


def test_each_trial_has_inputs_of_its_own_and_all_have_the_same_weights() -> None:
    request = kernel_request(CONFIG, read_job(make_job(num_correct_trials=5)), "CPU")
    cases = [*request.task.tests, *request.task.benchmarks]
    assert len(request.task.tests) == 5
    assert len({case.args["seed"] for case in cases}) == 6
    assert len({case.args["weights"] for case in cases}) == 1
    assert request.task.format is TaskFormat.KERNELBENCH
    assert request.task.shared_files == ()
    assert request.mode is Mode.TEST


def test_nobody_without_the_secret_knows_a_seed() -> None:
    job = read_job(make_job())
    seeds = {
        kernel_request(config, job, "CPU").task.tests[0].args["seed"]
        for config in (CONFIG, CONFIG, EvaluatorConfig(), EvaluatorConfig())
    }
    assert len(seeds) == 3


def test_the_timed_calls_are_divided_into_rounds() -> None:
    job = read_job(make_job(measure_performance=True, num_perf_trials=100))
    request = kernel_request(CONFIG, job, "CPU")
    assert (request.round_policy.looks, request.round_policy.samples) == ((3,), 34)
    assert request.mode is Mode.RANKED


def test_only_the_reference_itself_sees_the_reference() -> None:
    request = baseline_request(CONFIG, read_job(make_job()), "CPU")
    assert request.task.shared_files == ("reference.py",)
    assert request.mode is Mode.RANKED
    one, other = (read_job(make_job(code)) for code in (RIGHT, RIGHT + "#"))
    assert baseline_job(one) == baseline_job(other)
