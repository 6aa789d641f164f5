"""Tests of a task as it travels."""

import pytest
from pydantic import ValidationError

from runners.contract.task import (
    GPU_NAME,
    PROFILE_S,
    ArgValue,
    Mode,
    RankingBy,
    TaskDefinition,
    Workload,
)
from tests.doubles.factories import make_task


def test_a_workload_is_spelled_in_the_order_written() -> None:
    args: dict[str, ArgValue] = {"size": 128, "shape": (2, 3), "kind": "odd", "seed": 7}
    assert Workload(args=args).spec == "size: 128; shape: [2, 3]; kind: odd; seed: 7"


def test_a_task_survives_its_journey_as_json() -> None:
    task = make_task()
    assert TaskDefinition.model_validate_json(task.model_dump_json()) == task


@pytest.mark.parametrize("key", ["shared_files", "templates"])
def test_a_file_that_is_named_must_be_there(key: str) -> None:
    value = ("absent.py",) if key == "shared_files" else {"Python": "absent.py"}
    with pytest.raises(ValidationError, match=r"absent\.py"):
        make_task(**{key: value})


def test_no_file_may_take_the_submissions_name() -> None:
    with pytest.raises(ValidationError, match="is the submission's name"):
        make_task(files={"submission.py": ""})


@pytest.mark.parametrize("name", ["../x.py", "a/b.py", ".hidden", "a\nb", "", "x" * 101])
def test_a_file_name_is_flat_and_visible(name: str) -> None:
    with pytest.raises(ValidationError):
        make_task(files={name: ""})


@pytest.mark.parametrize(
    ("mode", "limit_s"),
    [(Mode.TEST, 10), (Mode.BENCHMARK, 20), (Mode.PROFILE, 20), (Mode.RANKED, 30)],
)
def test_each_mode_has_its_time_limit(mode: Mode, limit_s: int) -> None:
    task = make_task(test_timeout=10, benchmark_timeout=20, ranked_timeout=30)
    assert task.timeout_s(mode) == limit_s


@pytest.mark.parametrize(
    ("mode", "limit_s"),
    [(Mode.TEST, 10), (Mode.BENCHMARK, 20), (Mode.PROFILE, 20 + PROFILE_S), (Mode.RANKED, 40)],
)
def test_a_whole_evaluation_may_take_as_long_as_the_phases_that_it_has(
    mode: Mode, limit_s: int
) -> None:
    task = make_task(test_timeout=10, benchmark_timeout=20, ranked_timeout=30)
    assert task.limit_s(mode) == limit_s


@pytest.mark.parametrize(("name", "fits"), [("H100!", True), ("A100-80GB", True), ("a b", False)])
def test_gpu_names_are_one_word(name: str, *, fits: bool) -> None:
    assert (GPU_NAME.match(name) is not None) is fits


def test_a_ranked_run_times_only_the_benchmarks_which_score() -> None:
    benchmarks = (Workload(args={"size": 1}), Workload(args={"size": 2}))
    last = make_task(benchmarks=benchmarks, ranking_by=RankingBy.LAST)
    mean = make_task(benchmarks=benchmarks, ranking_by=RankingBy.MEAN)
    assert last.timed(Mode.RANKED) == benchmarks[-1:]
    assert mean.timed(Mode.RANKED) == benchmarks
    assert last.timed(Mode.BENCHMARK) == benchmarks
    assert last.timed(Mode.TEST) == last.timed(Mode.PROFILE) == ()


def test_a_task_of_several_gpus_needs_as_many_as_its_largest_case() -> None:
    cases = tuple(Workload(args={"size": 1, "world_size": size}) for size in (2, 8, 4))
    assert make_task(tests=cases, benchmarks=cases, multi_gpu=True).world_size == 8
    assert make_task(tests=cases, benchmarks=cases).world_size == 1
    assert make_task(multi_gpu=True).world_size == 1
