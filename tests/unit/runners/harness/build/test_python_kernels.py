from types import ModuleType
from typing import Any

import pytest
import torch

from runners.contract.io_contract import Argument, KernelCall, KernelKind, Role, TensorArgument
from runners.harness.build.kernel_calls import NoOutputError
from runners.harness.build.python_kernels import MODEL_SEED, TorchKernel
from runners.languages import InvalidSubmissionError

X = TensorArgument(name="x", dtype="float32", shape=(2,))
OUT = TensorArgument(name="out", dtype="float32", shape=(2,), role=Role.OUTPUT)
MODELS = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        return x * self.weight

    def twice(self, x):
        return 2 * x

class ModelNew(Model):
    def forward(self, x):
        return -x

def get_inputs():
    return [torch.randn(4), 3, [torch.ones(2)]]

def get_init_inputs():
    return [4]
"""


def made(
    source: str, kind: KernelKind = KernelKind.TORCH, args: tuple[Argument, ...] | None = None,
    **names: Any,  # noqa: ANN401 - as a call has them
) -> TorchKernel:  # fmt: skip
    module = ModuleType("kernel")
    exec(source, vars(module))  # noqa: S102 - a submission
    return TorchKernel(module, KernelCall(kind=kind, args=args, **names), torch.device("cpu"))


def test_a_function_is_called_with_the_arguments_of_the_contract() -> None:
    kernel = made("def f(x): return x + 1", args=(X, OUT), function_name="f")
    (found,) = kernel({"args": [torch.zeros(2), torch.zeros(2)]})
    assert found.tolist() == [1, 1]


def test_a_method_of_a_class_can_be_named() -> None:
    kernel = made(MODELS, args=(X,), class_name="Model", method_name="twice")
    assert kernel({"args": [torch.ones(2)]})[0].tolist() == [2, 2]


def test_each_kind_prefers_its_own_model() -> None:
    data = {"init": [2], "inputs": [torch.ones(2)]}
    assert made(MODELS, KernelKind.TORCH_CUDA)(data)[0].tolist() == [-1, -1]
    found = made(MODELS)(data)[0]
    torch.manual_seed(MODEL_SEED)
    assert torch.equal(found, torch.randn(2))
    new = MODELS.replace("class Model(", "class Base(").replace("(Model)", "(Base)")
    assert made(new)(data)[0].tolist() == [-1, -1]


def test_a_model_is_made_once() -> None:
    kernel = made(MODELS)
    first = kernel({"init": [2], "inputs": [torch.ones(2)]})[0]
    torch.manual_seed(1)
    assert torch.equal(kernel({"init": [2], "inputs": [torch.ones(2)]})[0], first)


def test_inputs_are_drawn_by_the_source_under_the_seed() -> None:
    kernel = made(MODELS)
    one, same, other = (kernel({"draw": seed}) for seed in (1, 1, 2))
    assert one["init"] == [4]
    assert torch.equal(one["inputs"][0], same["inputs"][0])
    assert not torch.equal(one["inputs"][0], other["inputs"][0])
    assert one["inputs"][1] == 3


def test_a_signature_tells_inputs_where_nothing_else_does() -> None:
    kernel = made("import torch\ndef f(x: torch.Tensor, y, n=3): return x", function_name="f")
    told = kernel({"draw": 1})
    assert [each.shape for each in told["inputs"]] == [(1024, 1024)] * 2
    model = made(MODELS.partition("def get_inputs")[0])
    assert [each.shape for each in model({"draw": 1})["inputs"]] == [(1,)]
    with pytest.raises(InvalidSubmissionError, match=r"`n`.*get_inputs.*io"):
        made("def f(n: int): return n", function_name="f")({"draw": 1})


def test_without_io_a_name_that_nothing_has_is_passed_over() -> None:
    """The evaluation server looks at the metadata beside io alone."""
    data = {"init": [2], "inputs": [torch.ones(2)]}
    named = made(MODELS, function_name="forward", class_name="Net")
    assert torch.equal(named(data)[0], made(MODELS)(data)[0])
    assert made(MODELS, class_name="ModelNew")(data)[0].tolist() == [-1, -1]


def test_what_a_model_is_made_of_lies_where_its_inputs_do() -> None:
    source = MODELS.replace("return [4]", "return [torch.ones(2)]")
    kernel = made(source)
    kernel.device = torch.device("meta")
    assert kernel({"draw": 1})["init"][0].device.type == "meta"


def test_inputs_that_can_only_be_made_on_the_host_are_moved_from_there() -> None:
    source = "import torch\ndef get_inputs(): return [torch.tensor(torch.ones(2).tolist())]\n"
    kernel = made(f"{source}class Model: ...")
    kernel.device = torch.device("meta")  # of which nothing can be read
    assert kernel({"draw": 1})["inputs"][0].device.type == "meta"


def test_inputs_that_cannot_be_made_on_the_host_are_not_asked_for_again() -> None:
    source = "calls = []\ndef get_inputs():\n    calls.append(1)\n    raise RuntimeError('none')\n"
    broken = made(f"{source}class Model: ...")
    with pytest.raises(RuntimeError, match="none"):
        broken({"draw": 1})
    assert broken.module.calls == [1]


def test_numpy_draws_the_same_under_one_seed() -> None:
    pytest.importorskip("numpy")
    source = (
        "import numpy, torch\nclass Model: ...\n"
        "def get_inputs(): return [torch.tensor(numpy.random.rand())]\n"
    )
    one, same = (made(source)({"draw": 3})["inputs"][0] for _ in range(2))
    assert torch.equal(one, same)


def test_several_kernels_are_called_with_everything_by_place() -> None:
    source = "def go(a, b): b.copy_(a); return None"
    kernel = made(source, KernelKind.MULTI_KERNEL, (X, OUT), entry_point="go")
    data = [torch.ones(2), torch.zeros(2)]
    assert kernel({"args": data}) == (data[1],)


@pytest.mark.parametrize(
    ("source", "kind", "names", "words"),
    [
        ("pass", KernelKind.TORCH, {}, "no `Model`"),
        ("pass", KernelKind.TORCH_CUDA, {}, "no `ModelNew`"),
        ("f = 1", KernelKind.TORCH, {"function_name": "f"}, "no `f`.*function_name"),
        ("pass", KernelKind.TORCH, {"class_name": "C"}, "no `C`.*class_name"),
        ("pass", KernelKind.MULTI_KERNEL, {}, "no entry_point"),
        ("pass", KernelKind.MULTI_KERNEL, {"entry_point": "run"}, "Entry point 'run' not found"),
    ],
)
def test_what_is_not_there_is_missed_before_any_call(
    source: str, kind: KernelKind, names: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidSubmissionError, match=words):
        made(source, kind, (X,), **names)


def test_failures_are_not_passed_over() -> None:
    with pytest.raises(InvalidSubmissionError, match="needs io"):
        made("def go(): pass", KernelKind.MULTI_KERNEL, None, entry_point="go")
    with pytest.raises(InvalidSubmissionError, match="no method `run`"):
        made(MODELS, args=(X,), method_name="run")({"args": [torch.ones(4)]})
    with pytest.raises(NoOutputError):
        made("def f(x): return 1", args=(X,), function_name="f")({"args": [torch.ones(2)]})
    with pytest.raises(NameError):
        made("def f(x): return torch.x", args=(X,), function_name="f")({"args": [torch.ones(2)]})
