"""Requests of the evaluation server, from what a client says to what it reads."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bot.web.compat.evaluation_server.requests import Request
from bot.web.compat.evaluation_server.results import KernelResultBody, result_of
from bot.web.compat.evaluation_server.translate import order_of
from runners.contract.task import Mode
from tests.doubles.ioing import (
    ADD,
    ADD_INTO,
    MODEL,
    PAIR,
    TRIPLE,
    compare,
    evaluate,
    io,
    kernel,
    scalar,
    tensor,
)
from tests.doubles.judging import Harness, serving

Ask = Callable[[Request], KernelResultBody]
CACHED = """
kept = []

def go(x, y, out):
    if not kept:
        kept.append(x + y)
    out.copy_(kept[0])
"""
PATCHED = """
import torch
torch.allclose = torch.isclose = torch.equal = lambda *_, **__: True

def go(x, y, out):
    out.zero_()
"""
LEAVING = """
import os

def go(x, y, out):
    os._exit(0)
"""
SPYING = """
import glob, os, torch
seen = set(os.listdir(".")) | set(glob.glob("/tmp/judge-*"))
assert seen <= {"kernel.py", "call.json", "__pycache__"}, seen

def add(x, y):
    return x + y
"""


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with serving() as warm:
        yield warm


@pytest.fixture
def ask(harness: Harness) -> Ask:
    return lambda request: result_of(
        request, harness.evaluate(order_of(request).request("integration"))
    )


@pytest.fixture
def check(harness: Harness) -> Ask:
    """The same without any times."""

    def checked(request: Request) -> KernelResultBody:
        order = order_of(request).request("integration")
        tested = order.model_copy(update={"mode": Mode.TEST})
        return result_of(request, harness.evaluate(tested))

    return checked


def refusal(result: KernelResultBody) -> str:
    """What a failed kernel is told; it is never told nothing."""
    found = result["kernel_exec_result"]
    assert not found["correctness"]
    assert found["runtime"] == 0.0
    assert "runtime_stats" not in found
    return str(found.get("compilation_error") or found["validation_error"])


def custom(source: str, **metadata: Any) -> Any:  # noqa: ANN401 - as `kernel` takes it
    return kernel(source, "multi_kernel", TRIPLE, **({"entry_point": "go"} | metadata))


def test_a_right_kernel_is_timed_beside_its_reference(ask: Ask) -> None:
    result = ask(compare())
    found = result["kernel_exec_result"]
    assert (found["compiled"], found["correctness"]) == (True, True)
    assert found["runtime"] == found["runtime_stats"]["mean"] > 0
    assert result["ref_runtime"]["max"] > 0
    assert found["metadata"]["timed_samples"] == 3


def test_a_model_is_judged_on_the_inputs_that_its_reference_tells(check: Ask) -> None:
    new = kernel(MODEL.replace("Model(", "ModelNew("), "torch_cuda")
    assert check(compare(new, kernel(MODEL)))["kernel_exec_result"]["correctness"]
    off = kernel(MODEL.replace("Model(", "ModelNew(").replace("(x)\n", "(x) * 99\n"), "torch_cuda")
    assert "elements differ" in refusal(check(compare(off, kernel(MODEL))))


def test_one_kernel_by_itself_runs_or_does_not(ask: Ask) -> None:
    result = ask(evaluate())
    assert result["kernel_exec_result"]["correctness"]
    assert "ref_runtime" not in result
    broken = kernel("def add(x, y):\n    return x @ y.T[:3]\n", "torch", PAIR, function_name="add")
    assert "Trial 1 failed" in refusal(ask(evaluate(broken)))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (ADD_INTO.replace("add_", "mul_"), "Numerical outputs don't match"),
        (CACHED, "elements differ"),
        (PATCHED, "elements differ"),
        (LEAVING, "exited with status 0"),
        ("def go(x, y, out):\n    out[1:] = (x + y)[1:]\n", "8 of 64 elements differ"),
        ("def go(x, y, out):\n    return None\n", "64 of 64 elements differ"),
        ("def go(x, y, out):\n    return (x + y).double()\n", "Dtype mismatch"),
        ("def go(x, y, out):\n    return x\n  ", "elements differ"),
        ("def go(:", "line 1"),
    ],
    ids=["wrong", "cached", "patched", "leaving", "partly", "nothing", "dtype", "alias", "syntax"],
)
def test_nothing_else_than_the_right_output_is_correct(ask: Ask, source: str, words: str) -> None:
    assert words in refusal(ask(compare(custom(source))))


def test_sources_that_define_nothing_are_no_success(ask: Ask) -> None:
    result = ask(compare(kernel("1", "torch", PAIR), kernel("pass", "torch", PAIR)))
    assert "there is no `Model`" in refusal(result)
    assert not result["kernel_exec_result"]["compiled"]


def test_outputs_without_a_tensor_are_no_success(ask: Ask) -> None:
    one = kernel("def f(x):\n    return 1\n", "torch", io(tensor("x")), function_name="f")
    assert "the kernel has no output" in refusal(ask(compare(one, one)))


def test_a_failing_reference_is_told_as_such(ask: Ask) -> None:
    ref = kernel(ADD.replace("x + y", "x + undefined"), "torch", PAIR, function_name="add")
    found = ask(compare(ref=ref))
    assert "the reference kernel" in refusal(found)
    assert "undefined" in refusal(found)
    assert found["kernel_exec_result"]["error_category"] == "reference_error"


def test_a_reference_sees_neither_the_judge_nor_the_contract(check: Ask) -> None:
    spy = kernel(SPYING, "torch", PAIR, function_name="add")
    assert check(compare(ref=spy))["kernel_exec_result"]["correctness"]


def test_a_kernel_that_does_not_end_is_killed_in_time(ask: Ask) -> None:
    endless = kernel(
        "import time\ndef f():\n    time.sleep(60)\n", "torch", io(), function_name="f"
    )
    result = ask(evaluate(endless, timeout=5))
    assert "time limit" in refusal(result)
    assert result["kernel_exec_result"]["error_category"] == "timed_out"


def test_scalars_and_texts_arrive_as_they_are(check: Ask) -> None:
    args = io(tensor("x"), scalar("factor", 2.5), scalar("how", "up"), scalar("deep", value=True))
    source = (
        "def f(x, factor, how, deep):\n"
        "    assert (factor, how, deep) == (2.5, 'up', True)\n"
        "    return x * factor\n"
    )
    right = kernel(source, "torch", args, function_name="f")
    assert check(compare(right, right))["kernel_exec_result"]["correctness"]
