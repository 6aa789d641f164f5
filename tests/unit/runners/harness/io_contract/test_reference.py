"""Whole evaluations of kernels with a contract, by real candidates in this process."""

from dataclasses import replace

import pytest
import torch

from bot.web.compat.evaluation_server.requests import CompareRequest, Request
from bot.web.compat.evaluation_server.translate import contract_of, order_of
from runners.contract.evaluation import CaseKind, Evaluation
from runners.contract.io_contract import Side, side_of
from runners.contract.task import Mode, Workload
from runners.contract.verdict import Verdict
from runners.harness.graders import native
from runners.harness.io_contract.reference import ContractTask
from runners.harness.protocol.channel import TRAIN_MOST
from runners.harness.verdicts import VerdictError
from tests.doubles.ioing import ADD, MODEL, PAIR, TRIPLE, compare, evaluate, io, kernel, tensor
from tests.doubles.judging import make_judging
from tests.unit.runners.harness.conftest import Judge, Sit

FAITHLESS = """
import random, torch

def add(x, y):
    return x + torch.tensor([random.random() for _ in range(x.numel())]).view_as(x)
"""
LEAVES_A_PART = "def go(x, y, out):\n    out[1:] = (x + y)[1:]\n"
DIFFERS = """
seen = []

def f(*args):
    assert all(not args[0].equal(each) for each in seen), "an input came twice"
    seen.append(args[0].clone())
    return args[0] * 2
"""


def judged(judge: Judge, request: Request, mode: Mode = Mode.TEST) -> Evaluation:
    return judge(order_of(request).request("unit").model_copy(update={"mode": mode}))


def doubling(custom: str, ref: str) -> CompareRequest:
    made = io(tensor("x", init={"kind": "randn", "seed": 3}))
    own, other = (kernel(each, "torch", made, function_name="f") for each in (custom, ref))
    return compare(own, other)


def test_both_kernels_are_timed_by_candidates_of_their_own(judge: Judge) -> None:
    found = judged(judge, compare(), Mode.RANKED)
    assert found.verdict is Verdict.PASSED, found
    timed = [case for case in found.cases if case.kind is CaseKind.BENCHMARK]
    assert [case.spec for case in timed] == ["kernel: reference", "kernel: custom"]
    assert all(case.measurement for case in timed)


def test_every_trial_has_inputs_of_its_own_even_where_a_seed_is_given(judge: Judge) -> None:
    found = judged(judge, doubling(DIFFERS, DIFFERS))
    assert found.verdict is Verdict.PASSED, found.message
    alone = kernel(DIFFERS, "torch", PAIR, function_name="f")
    assert judged(judge, evaluate(alone), Mode.RANKED).verdict is Verdict.PASSED


def test_an_output_may_be_far_larger_than_its_inputs(judge: Judge) -> None:
    made = io(tensor("x", shape=[1024], init={"kind": "randn", "seed": 3}))
    right = "import torch\ndef f(x):\n    return torch.outer(x, x)\n"
    wrong = right.replace("outer(x, x)", "outer(x, x) + 1")
    ref, own, off = (
        kernel(each, "torch", made, function_name="f") for each in (right, right, wrong)
    )

    assert judged(judge, compare(own, ref)).verdict is Verdict.PASSED
    found = judged(judge, compare(off, ref))
    assert found.verdict is Verdict.WRONG_ANSWER
    assert "1048576 of 1048576 elements differ" in found.message


def test_inputs_of_a_model_are_the_references_or_guessed_but_never_the_judged_kernels(
    judge: Judge,
) -> None:
    """With inputs of its own, a kernel passed whose constant output is right for them."""
    silent = MODEL.partition("def get_inputs")[0].replace("width)", "width=16)", 1)
    right = silent.replace("Model(", "ModelNew(")
    wrong = right.replace("self.linear(x)", "torch.zeros_like(x)")
    telling = wrong + "\ndef get_inputs():\n    return [torch.zeros(8, 16)]\n"

    for source, verdict in ((right, Verdict.PASSED), (telling, Verdict.WRONG_ANSWER)):
        own = kernel(source, "torch_cuda")
        assert judged(judge, compare(own, kernel(silent))).verdict is verdict
    assert judged(judge, evaluate(kernel(MODEL))).verdict is Verdict.PASSED


def test_a_reference_that_never_says_the_same_is_its_own_fault(judge: Judge) -> None:
    other = kernel(ADD, "torch", PAIR, function_name="add")
    ref = kernel(FAITHLESS, "torch", PAIR, function_name="add")
    found = judged(judge, compare(other, ref))
    assert found.verdict is Verdict.TASK_ERROR
    assert "another output each time" in found.message


def test_a_reference_that_leaves_a_part_unwritten_is_at_fault(judge: Judge) -> None:
    ref = kernel(LEAVES_A_PART, "multi_kernel", TRIPLE, entry_point="go")
    found = judged(judge, compare(ref=ref))
    assert found.verdict is Verdict.TASK_ERROR
    assert "the reference kernel returns NaN, or leaves" in found.message


def test_more_than_there_is_room_for_is_refused_before_it_is_made(judge: Judge) -> None:
    huge = io(tensor("x", shape=[1 << 30, 4]))
    found = judged(judge, evaluate(kernel(ADD, "torch", huge, function_name="add")))
    assert found.verdict is Verdict.TASK_ERROR
    assert "take 16,384 MiB" in found.message


def test_on_the_cpu_a_call_has_half_of_the_memory(judge: Judge) -> None:
    large = io(tensor("x", shape=[1 << 20, 768]))  # 3 GiB of 4
    found = judged(judge, evaluate(kernel(ADD, "torch", large, function_name="add")))
    assert found.verdict is Verdict.TASK_ERROR
    assert "take 3,072 MiB; there is room for 2,048" in found.message


def test_on_a_gpu_a_call_has_its_part_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1 << 30, 24 << 30))
    large = io(tensor("x", shape=[1 << 29]))
    code = ContractTask(contract_of(evaluate(kernel(ADD, "torch", large))), on_gpu=True)
    with pytest.raises(VerdictError, match=r"take 2,048 MiB; there is room for 1,024"):
        code.generate(Workload(args={}), 1)


def test_on_a_gpu_the_source_tells_the_structure_of_its_outputs_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is needed for each call, and a source whose later outputs have another one is refused."""
    code = ContractTask(contract_of(compare()), on_gpu=True)
    asked: list[object] = []

    def output(data: object) -> tuple[torch.Tensor]:
        asked.append(data)
        return (torch.zeros(3),)

    monkeypatch.setattr(code, "_expected_output", output)
    assert code.expected(1) is code.expected(2) is not None
    assert asked == [1]


def test_what_does_not_fit_beside_each_other_is_the_calls_fault(sit: Sit) -> None:
    request = order_of(evaluate()).request("unit")
    code = ContractTask(contract_of(evaluate()), on_gpu=False)
    told = pytest.raises(VerdictError, match="do not fit into this GPU's memory")
    session = replace(sit(make_judging()), request=request)
    with told as caught, code.opened(session):
        assert 0 < code.deadline(1).remaining <= 1
        assert code.deadline(1000).remaining < 30
        raise torch.OutOfMemoryError
    assert caught.value.verdict is Verdict.TASK_ERROR


def test_a_source_that_tells_no_inputs_falls_where_it_is_tested(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU it fell before anything was built, and was told as a failed compilation."""

    def fall(*_: object) -> None:
        raise VerdictError(Verdict.CRASHED, "boom")

    asked = evaluate(kernel(MODEL))
    code = ContractTask(contract_of(asked), on_gpu=False)
    monkeypatch.setattr(code, "generate", fall)
    monkeypatch.setattr(code, "first_plan", lambda plan: plan)
    request = order_of(asked).request("unit")
    session = replace(sit(make_judging()), request=request, on_gpu=True, task_code=code)
    assert native._first_plan(session, request.task.tests).device_size == 0


def test_the_outputs_of_a_train_are_checked_after_all_of_its_inputs_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = ContractTask(contract_of(compare()), on_gpu=False)
    monkeypatch.setattr(code, "_data", lambda _, seed: {"args": [torch.tensor([seed])]})
    monkeypatch.setattr(code, "_fetch", lambda data: (data["args"][0] + code._trial_of(data)[1],))
    inputs = [code.generate(Workload(args={}), seed) for seed in range(TRAIN_MOST)]
    for seed, data in enumerate(inputs):
        assert code.mismatch(data, (torch.tensor([2 * seed]),), None) is None
        assert code.mismatch(data, (torch.tensor([2 * seed + 1]),), None)


@pytest.mark.parametrize("args", [{}, {"kernel": "custom"}, {"kernel": "reference"}])
def test_a_case_is_for_the_judged_kernel_unless_it_says_otherwise(args: dict[str, str]) -> None:
    assert side_of(Workload(args={**args})) is Side(args.get("kernel", "custom"))
