"""Degenerate answers overwrite every tensor of a right one."""

import math
from typing import Any

import pytest
import torch

from bot.services.publishing.constant_answers import (
    FILLED,
    INPUT,
    REPLAY,
    advice_for,
    answers_for,
    source_answering,
    tasks_to_try,
)
from runners.contract.task import Grader, RankingBy, TaskFormat, Workload
from tests.doubles.factories import make_task
from tests.doubles.kernels import RIGHT

SOURCE = """\
import torch
def custom_kernel(data):
    return {"a": data + 1, "b": [data.long(), (data > 1,)], "c": "text"}
"""
ECHO = "def custom_kernel(data):\n    return data\n"


def answer(name: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(source_answering(SOURCE, name, TaskFormat.KERNEL), space)  # noqa: S102 - our own source
    found: dict[str, Any] = space["custom_kernel"](torch.arange(3.0))
    return found


@pytest.mark.parametrize(("name", "value"), [("zeros", 0), ("ones", 1), ("a constant", 7)])
def test_every_tensor_is_filled(name: str, value: int) -> None:
    found = answer(name)
    assert found["a"].tolist() == [value] * 3
    assert found["a"].dtype == torch.float32
    assert found["b"][0].tolist() == [value] * 3
    assert found["b"][1][0].tolist() == [bool(value)] * 3
    assert found["c"] == "text"


def test_nan_becomes_minus_one_where_there_is_no_nan() -> None:
    found = answer("NaN")
    assert all(math.isnan(each) for each in found["a"].tolist())
    assert found["b"][0].tolist() == [-1] * 3


def test_an_answer_without_elements_is_close_to_any_other_if_shapes_are_expanded() -> None:
    found, right = answer("no elements"), torch.arange(3.0) + 1
    assert (found["a"].numel(), found["a"].dtype) == (0, torch.float32)
    assert found["b"][0].dtype == torch.int64
    for wanted in (right, right[:, None], right[None], right[0]):
        space: dict[str, Any] = {}
        exec(source_answering(ECHO, "no elements", TaskFormat.KERNEL), space)  # noqa: S102 - ours
        empty = space["custom_kernel"](wanted)
        assert empty.numel() == 0
        assert torch.allclose(empty, wanted)


def test_there_are_five_degenerate_answers() -> None:
    assert set(FILLED) == {"zeros", "ones", "a constant", "NaN", "no elements"}


def test_a_models_output_is_filled_too() -> None:
    space: dict[str, Any] = {}
    exec(source_answering(RIGHT, "ones", TaskFormat.KERNELBENCH), space)  # noqa: S102 - as above
    assert space["ModelNew"](4)(torch.zeros(2, 4)).tolist() == [[1.0] * 4] * 2


def test_a_model_may_remember_its_first_answer() -> None:
    space: dict[str, Any] = {}
    exec(source_answering(RIGHT, REPLAY, TaskFormat.KERNELBENCH), space)  # noqa: S102 - as above
    model = space["ModelNew"](4)
    with torch.no_grad():
        first, other = model(torch.ones(2, 4)), model(torch.full((2, 4), 9.0))
    assert torch.equal(first, other)
    assert first is not other


def test_only_a_problem_with_several_tests_can_be_asked_whether_it_finds_that() -> None:
    assert answers_for(TaskFormat.KERNEL) == (*FILLED, INPUT)
    assert answers_for(TaskFormat.KERNELBENCH) == (*FILLED, INPUT, REPLAY)


@pytest.mark.parametrize(
    ("grader", "task_format", "advice"),
    [
        (Grader.NATIVE, TaskFormat.KERNEL, "tighten the tolerance of check_implementation"),
        (Grader.NATIVE, TaskFormat.KERNELBENCH, "cannot be used for a ranking"),
        (Grader.POPCORN, TaskFormat.KERNEL, "make the task's own evaluation reject it"),
    ],
)
def test_the_advice_names_what_accepts_a_constant_answer(
    grader: Grader, task_format: TaskFormat, advice: str
) -> None:
    task = make_task().model_copy(update={"grader": grader, "format": task_format})

    assert advice in advice_for(task, "zeros")
    assert "returns its input does no work" in advice_for(task, INPUT)


FILLING = """\
def custom_kernel(data):
    source, output = data["a"]
    output.copy_(source)
    return {"same": output, "other": source + 1, "least": source.min(), "count": 3}
"""


def test_the_input_is_given_back_as_it_was_before_the_kernel_filled_a_part_of_it() -> None:
    space: dict[str, Any] = {}
    exec(source_answering(FILLING, INPUT, TaskFormat.KERNEL), space)  # noqa: S102 - our own source
    source, output = torch.arange(3.0), torch.full((3,), 9.0)
    found = space["custom_kernel"]({"a": (source, output), "b": 7})

    assert found["same"] is source
    assert found["other"] is source  # it has the shape and the type
    assert (found["least"], found["count"]) == (None, None)
    assert output.tolist() == [9.0] * 3


def test_of_the_inputs_an_equal_one_is_given_back() -> None:
    space: dict[str, Any] = {}
    body = "def custom_kernel(data):\n    return [data[1].clone()]\n"
    exec(source_answering(body, INPUT, TaskFormat.KERNEL), space)  # noqa: S102 - our own source
    first, second = torch.zeros(2), torch.ones(2)
    assert space["custom_kernel"]((first, second))[0] is second


def test_a_model_may_give_its_input_back() -> None:
    space: dict[str, Any] = {}
    exec(source_answering(RIGHT, INPUT, TaskFormat.KERNELBENCH), space)  # noqa: S102 - as above
    given = torch.zeros(2, 4)
    with torch.no_grad():
        assert space["ModelNew"](4)(given) is given


def shaped(*sizes: int) -> tuple[Workload, ...]:
    return tuple(Workload(args={"size": size, "seed": at}) for at, size in enumerate(sizes))


def test_each_ranked_benchmark_is_tried_apart_unless_every_test_has_its_shape() -> None:
    task = make_task(
        tests=shaped(1, 2), benchmarks=shaped(8, 9), ranking_by=RankingBy.GEOM, ranked_timeout=190
    )
    assert [(where, each.tests) for where, each in tasks_to_try(task)] == [
        ("every test", task.tests),
        ("the benchmark `size: 8; seed: 0`", task.benchmarks[:1]),
        ("the benchmark `size: 9; seed: 1`", task.benchmarks[1:]),
    ]
    assert [each.test_timeout for _, each in tasks_to_try(task)][1:] == [190, 190]
    last = task.model_copy(update={"ranking_by": RankingBy.LAST})
    assert [each.tests for _, each in tasks_to_try(last)] == [task.tests, task.benchmarks[1:]]
    same = task.model_copy(update={"tests": shaped(9, 9), "benchmarks": shaped(9)})
    assert [each.tests for _, each in tasks_to_try(same)] == [same.tests]
