"""What is launched, with a stand-in for Triton, which needs a GPU; tests/gpu has the real one."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

from runners.contract.io_contract import (
    ContractScalar,
    KernelCall,
    KernelKind,
    Role,
    TensorArgument,
)
from runners.harness.build.python_kernels import TritonKernel
from runners.languages import InvalidSubmissionError

ARGS = (
    ContractScalar(name="BLOCK", value=64, meta=True),
    TensorArgument(name="x", dtype="float32", shape=(2,)),
    TensorArgument(name="out", dtype="float32", shape=(2,), role=Role.OUTPUT),
    ContractScalar(name="n", value=2),
)


class Jitted:
    """As much of Triton's type as is asked for."""

    def __init__(self) -> None:
        self.launched: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def fn(self) -> None: ...

    def run(self) -> None: ...

    def __getitem__(self, grid: object) -> Callable[..., None]:
        return lambda *args, **options: self.launched.append((grid, args, options))


def made(module: ModuleType, **call: Any) -> TritonKernel:  # noqa: ANN401 - any of its fields
    return TritonKernel(module, KernelCall(kind=KernelKind.TRITON, args=ARGS, **call))


@pytest.fixture
def module() -> ModuleType:
    found = ModuleType("kernel")
    vars(found).update(Type=Jitted, first=Jitted(), second=Jitted(), number=3)
    return found


def test_everything_is_passed_by_place_with_warps_and_stages(module: ModuleType) -> None:
    x, out = torch.ones(2), torch.zeros(2)
    kernel = made(module, grid=(4, 2, 1), num_warps=8, num_stages=3)
    assert kernel({"args": [64, x, out, 2]}) == (out,)
    (launched,) = module.first.launched
    assert launched[0] == (4, 2, 1)
    assert launched[1] == (64, x, out, 2)
    assert launched[2] == {"num_warps": 8, "num_stages": 3}


def test_what_is_not_said_is_left_to_triton(module: ModuleType) -> None:
    made(module, kernel_name="second")({"args": [64, torch.ones(2), torch.ones(2), 2]})
    assert module.second.launched[0][2] == {}
    assert module.first.launched == []


def test_a_missing_kernel_is_told(module: ModuleType) -> None:
    with pytest.raises(InvalidSubmissionError, match="no Triton kernel `number`"):
        made(module, kernel_name="number")
    with pytest.raises(InvalidSubmissionError, match=r"@triton\.jit"):
        made(ModuleType("empty"))
    with pytest.raises(InvalidSubmissionError, match="needs io"):
        TritonKernel(module, KernelCall(kind=KernelKind.TRITON))
