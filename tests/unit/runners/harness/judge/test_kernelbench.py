import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from runners.contract.task import Workload
from runners.contract.verdict import Verdict
from runners.harness.build.loading import ModelKernel
from runners.harness.judge.kernelbench import KernelBenchTask
from runners.harness.sandbox.syscalls import memory_limited
from runners.harness.verdicts import VerdictError
from tests.doubles.kernels import LINEAR

CASE = Workload(args={"precision": "fp32", "weights": 5})
PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, x, labels):
        {body}

def get_inputs():
    return [torch.randn(8, 10), torch.randint(0, 10, (8,))]

def get_init_inputs():
    return [10]
"""


@pytest.fixture(autouse=True)
def own_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "reference", raising=False)


def problem(folder: Path, reference: str = LINEAR) -> KernelBenchTask:
    (folder / "reference.py").write_text(reference)
    return KernelBenchTask(folder, on_gpu=False)


def with_forward(folder: Path, body: str) -> KernelBenchTask:
    return problem(folder, PROBLEM.format(body=body))


def own_answer(code: KernelBenchTask, data: dict[str, Any]) -> torch.Tensor:
    """What the reference, handed in as a kernel, gives for an input."""
    module = sys.modules["reference"]
    output: torch.Tensor = ModelKernel(module.Model)(data)
    return output


def refused(code: KernelBenchTask, data: dict[str, Any], output: object) -> str | None:
    return code.mismatch(data, output, code.expected(data))


def test_the_reference_itself_is_right(tmp_path: Path) -> None:
    code = problem(tmp_path)
    data = code.generate(CASE, 1)
    assert refused(code, data, own_answer(code, data)) is None


@pytest.mark.parametrize(
    ("right", "wrong"), [("x.new_full((1,), 7.0)", "x.new_empty(0)"), ("x[:0, 0]", "x.new_ones(1)")]
)
def test_an_output_is_compared_with_the_structure_of_the_right_one_for_its_own_input(
    tmp_path: Path, right: str, wrong: str
) -> None:
    """An empty tensor and a number are close to each other for torch, which broadcasts them."""
    code = with_forward(tmp_path, f"return {right}")
    data = code.generate(CASE, 1)
    output: torch.Tensor = eval(wrong, {"x": data["inputs"][0]})  # noqa: S307 - written above
    assert "shape" in (code.mismatch(data, output, None) or "")


def test_each_seed_has_inputs_of_its_own_and_the_weights_stay(tmp_path: Path) -> None:
    code = problem(tmp_path)
    one, same, other = (code.generate(CASE, seed) for seed in (1, 1, 2))
    assert torch.equal(one["inputs"][0], same["inputs"][0])
    assert not torch.equal(one["inputs"][0], other["inputs"][0])
    assert torch.equal(*(each["weights"]["flat"]["float32"] for each in (one, other)))
    moved = code.generate(Workload(args={"weights": 6}), 1)
    assert not torch.equal(*(each["weights"]["flat"]["float32"] for each in (one, moved)))


def test_an_earlier_input_is_still_judged_by_its_own_weights(tmp_path: Path) -> None:
    code = problem(tmp_path)
    data = code.generate(CASE, 1)
    answer = own_answer(code, data)
    code.generate(Workload(args={"weights": 6}), 1)
    assert refused(code, data, answer) is None


@pytest.mark.parametrize(
    ("precision", "off", "right"),
    [
        ("fp32", 5e-5, True), ("fp32", 5e-4, False), ("fp16", 5e-3, True), ("fp16", 5e-2, False),
        ("bf16", 5e-3, True), ("bf16", 1e-1, False),
    ],
)  # fmt: skip
def test_what_is_right_depends_on_the_precision(
    tmp_path: Path, precision: str, off: float, *, right: bool
) -> None:
    code = with_forward(tmp_path, "return x * 0")
    data = code.generate(Workload(args={"precision": precision}), 1)
    assert (refused(code, data, data["inputs"][0] * 0 + off) is None) is right


def test_integers_stay_integers_and_so_a_loss_can_be_a_problem(tmp_path: Path) -> None:
    code = with_forward(tmp_path, "return torch.nn.functional.cross_entropy(x, labels)")
    data = code.generate(Workload(args={"precision": "bf16"}), 1)
    assert [each.dtype for each in data["inputs"]] == [torch.bfloat16, torch.int64]
    assert refused(code, data, own_answer(code, data)) is None


def test_several_outputs_are_all_compared(tmp_path: Path) -> None:
    code = with_forward(tmp_path, "return x + 1, {'labels': labels + self.classes}")
    data = code.generate(CASE, 1)
    right = own_answer(code, data)
    assert refused(code, data, right) is None
    wrong = (right[0], {"labels": data["inputs"][1] + 11})
    assert (refused(code, data, wrong) or "").startswith("output 1: 8 of 8 elements differ")
    assert "2 are expected" in (refused(code, data, (right[0],)) or "")


def test_numbers_and_texts_of_an_output_are_compared_too(tmp_path: Path) -> None:
    code = with_forward(tmp_path, "return x, x.sum().item(), {'classes': self.classes}, 'done'")
    data = code.generate(CASE, 1)
    right = own_answer(code, data)
    assert refused(code, data, right) is None
    x, total, classes, done = right
    assert refused(code, data, (x, total * (1 + 1e-6), classes, done)) is None
    assert "is expected" in (refused(code, data, (x, total + 1, classes, done)) or "")
    assert "is expected" in (refused(code, data, (x, float("nan"), classes, done)) or "")
    assert "10 is expected" in (refused(code, data, (x, total, {"classes": 10**400}, done)) or "")
    assert "'d', 'done' is expected" in (refused(code, data, (x, total, classes, "d")) or "")


def test_an_output_of_eight_bits_is_compared(tmp_path: Path) -> None:
    code = with_forward(tmp_path, "return x.to(torch.float8_e4m3fn)")
    data = code.generate(CASE, 1)
    right = own_answer(code, data)
    assert refused(code, data, right) is None
    assert "80 of 80" in (refused(code, data, (right.float() + 9).to(right.dtype)) or "")


def test_an_output_of_four_bits_is_compared(tmp_path: Path) -> None:
    code = with_forward(tmp_path, "return x.abs().to(torch.uint8).view(torch.float4_e2m1fn_x2)")
    data = code.generate(CASE, 1)
    right = own_answer(code, data)
    wrong = (right.view(torch.uint8) ^ 0x30).view(right.dtype)
    assert refused(code, data, right) is None
    assert "80 of 160" in (refused(code, data, wrong) or "")


@pytest.mark.parametrize(("dtype", "count"), [("int64", 30_000), ("int32", 200_000), ("uint8", 99)])
def test_integers_have_no_tolerance(tmp_path: Path, dtype: str, count: int) -> None:
    code = with_forward(tmp_path, f"return torch.arange({count}).to(torch.{dtype})")
    data = code.generate(Workload(args={"precision": "bf16"}), 1)
    right = own_answer(code, data)
    assert refused(code, data, right) is None
    near = right.clone()
    near[-1] -= 1
    assert f"the first at [{count - 1}]" in (refused(code, data, near) or "")


def test_a_wrong_output_is_described_even_if_memory_is_short(tmp_path: Path) -> None:
    code = with_forward(tmp_path, "return torch.zeros(1 << 12, 1, 1, 1 << 12)")
    data = code.generate(CASE, 1)
    wrong = torch.ones(1 << 12, 1, 1, 1 << 12)
    with memory_limited(2 * wrong.nbytes):
        assert "first at [0, 0, 0, 0]" in (refused(code, data, wrong) or "")


@pytest.mark.parametrize(
    ("count", "total", "kind", "words"),
    [
        (80, 7.0, "sum", None),
        (80, 7.0003, "sum", None),  # within the tolerance of floats
        (80, 0.0, "sum", ": 0.0, 7.0 is expected"),
        (80, float("nan"), "sum", ": nan, 7.0"),
        (81, 7.0, "sum", ": 81, 80 is expected"),
        (80, 7.0, "mean", ": 'mean', 'sum' is expected"),
        (True, 7.0, "sum", "is a bool, a int is expected"),
    ],
)
def test_values_that_are_no_tensors_are_compared_too(
    tmp_path: Path, count: int, total: float, kind: str, words: str | None
) -> None:
    code = with_forward(tmp_path, "return x, {'of': [x.numel(), 7.0, 'sum', None]}")
    data = code.generate(CASE, 1)
    found = refused(code, data, (data["inputs"][0], {"of": [count, total, kind, None]}))
    assert (words or "") in (found or "")
    assert (found is None) is (words is None)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("output * float('nan')", "elements differ"),
        ("output.double()", "dtype float64, float32 is expected"),
        ("output[:3]", "shape [3, 10]"),
        ("[output]", "is a list"),
    ],
)
def test_what_differs_is_named(tmp_path: Path, spoil: str, words: str) -> None:
    code = with_forward(tmp_path, "return x + 1")
    data = code.generate(CASE, 1)
    output = eval(spoil, {"output": own_answer(code, data)})  # noqa: S307 - written above
    assert words in (refused(code, data, output) or "")


def test_infinities_of_the_reference_are_expected(tmp_path: Path) -> None:
    code = with_forward(tmp_path, "return x.masked_fill(x > 0, float('-inf'))")
    data = code.generate(CASE, 1)
    assert refused(code, data, own_answer(code, data)) is None


def test_a_reference_may_write_into_its_inputs_and_its_state(tmp_path: Path) -> None:
    body = "self.n = getattr(self, 'n', 0); return x.relu_()"
    code = with_forward(tmp_path, body)
    data = code.generate(CASE, 1)
    before = data["inputs"][0].clone()
    assert refused(code, data, torch.relu(before)) is None
    assert torch.equal(data["inputs"][0], before)


def test_running_statistics_do_not_wander(tmp_path: Path) -> None:
    body = "self.norm(x); return self.norm.running_mean + 0"
    reference = PROBLEM.format(body=body).replace(
        "self.classes = classes", "self.norm = nn.BatchNorm1d(classes)"
    )
    code = problem(tmp_path, reference)
    data = code.generate(CASE, 1)
    answer = own_answer(code, data)
    assert refused(code, data, answer) is None
    assert refused(code, data, answer) is None


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("import nothing_such", "reference.py failed: ModuleNotFoundError"),
        (LINEAR.replace("class Model", "class Other"), "no function `Model`"),
        (LINEAR.replace("return [torch", "return 1 / 0, [torch"), "get_inputs failed: ZeroDivis"),
        (LINEAR.replace("return [32]", "return []"), "Model failed: TypeError"),
        (LINEAR.replace("torch.relu", "torch.no_such"), "Model failed: AttributeError"),
        (LINEAR.replace("torch.relu(", "torch.log(-torch.relu("), "reference.py failed"),
        (LINEAR.replace("torch.relu(", "0 / 0 * torch.relu("), "Model failed: ZeroDivisionError"),
    ],
)
def test_a_reference_that_fails_is_no_kernels_fault(
    tmp_path: Path, reference: str, words: str
) -> None:
    with pytest.raises(VerdictError, match=words) as ruled:
        refused(code := problem(tmp_path, reference), code.generate(CASE, 1), torch.zeros(16, 32))
    assert ruled.value.verdict is Verdict.TASK_ERROR


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return x * float('nan')", "returns NaN"),
        ("return torch.complex(x, x * float('nan'))", "returns NaN"),
        ("return x + torch.rand_like(x)", "another output each time"),
    ],
)
def test_a_reference_that_nobody_can_match_is_no_kernels_fault(
    tmp_path: Path, body: str, words: str
) -> None:
    code = with_forward(tmp_path, body)
    data = code.generate(CASE, 1)
    dtype = torch.complex64 if "complex" in body else torch.float32
    with pytest.raises(VerdictError, match=words) as ruled:
        refused(code, data, torch.zeros(8, 10, dtype=dtype))
    assert ruled.value.verdict is Verdict.TASK_ERROR


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"precision": "fp8"}, "precision 'fp8' is unknown; choose one of fp32, fp16, bf16"),
        ({"size": 3}, "can set only precision, seed, weights"),
        ({"weights": "a"}, "can set only"),
    ],
)
def test_a_case_that_means_nothing_is_the_tasks_fault(
    tmp_path: Path, args: dict[str, Any], words: str
) -> None:
    with pytest.raises(VerdictError, match=words) as ruled:
        problem(tmp_path).generate(Workload(args=args), 1)
    assert ruled.value.verdict is Verdict.TASK_ERROR


def test_a_problem_may_be_one_function(tmp_path: Path) -> None:
    code = problem(tmp_path, "def forward(x): return x * 2")
    data = code.generate(CASE, 3)
    (x,) = data["inputs"]
    assert x.shape == (1024, 1024)
    assert torch.equal(x, code.generate(CASE, 3)["inputs"][0])
    assert not torch.equal(x, code.generate(CASE, 4)["inputs"][0])
    assert code.mismatch(data, x * 2, code.expected(data)) is None
    assert code.mismatch(data, x * 3, code.expected(data))


def test_a_function_s_own_inputs_count(tmp_path: Path) -> None:
    text = "import torch\ndef get_inputs(): return [torch.ones(3)]\ndef forward(x): return x"
    assert problem(tmp_path, text).generate(CASE, 3)["inputs"][0].shape == (3,)


def test_a_function_that_takes_no_shape_is_the_task_s_fault(tmp_path: Path) -> None:
    code = problem(tmp_path, "def forward(x): return x.reshape(7, 11)")
    with pytest.raises(VerdictError, match="get_inputs") as told:
        code.generate(CASE, 3)
    assert told.value.verdict is Verdict.TASK_ERROR
