"""Kernels and arguments in the evaluation server's format, for tests of its API and the judge."""

from typing import Any

from bot.web.compat.evaluation_server.io_contract import IOContract
from bot.web.compat.evaluation_server.requests import (
    CompareRequest,
    EvaluateRequest,
    KernelCode,
    KernelType,
)

ADD = "import torch\ndef add(x, y):\n    return x + y\n"
ADD_INTO = "def go(x, y, out):\n    out.copy_(x)\n    out.add_(y)\n"
MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return self.linear(x)

def get_inputs():
    return [torch.randn(8, 16)]

def get_init_inputs():
    return [16]
"""
RANDN = {"kind": "randn"}


def tensor(name: str, *, role: str = "input", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """A tensor of 8 by 8 floats, random by default."""
    spec = {"shape": [8, 8], **({} if role == "output" else {"init": RANDN}), **spec}
    return {"name": name, "type": "tensor", "role": role, "tensor_spec": spec}


def scalar(name: str, value: bool | int | float | str, **more: Any) -> dict[str, Any]:  # noqa: ANN401, FBT001, PYI041
    """A scalar argument with the type of its value."""
    return {"name": name, "type": type(value).__name__, "value": value, **more}


def io(*args: dict[str, Any], **launch: Any) -> IOContract:  # noqa: ANN401 - of any part of it
    """A contract with these arguments."""
    return IOContract.model_validate({"args": args, **({"launch": launch} if launch else {})})


def kernel(
    source: str,
    kind: str = "torch",
    contract: IOContract | None = None,
    **metadata: Any,  # noqa: ANN401
) -> KernelCode:
    """A kernel with this source, kind and metadata."""
    return KernelCode(
        source_code=source, kernel_type=KernelType(kind), io=contract, metadata=metadata or None
    )


PAIR = io(tensor("x"), tensor("y"))
TRIPLE = io(tensor("x"), tensor("y"), tensor("out", role="output"))
ADDING = kernel(ADD, "torch", PAIR, function_name="add")
ADDING_INTO = kernel(ADD_INTO, "multi_kernel", TRIPLE, entry_point="go")


def evaluate(code: KernelCode = ADDING, trials: int = 3, timeout: int = 30) -> EvaluateRequest:
    """A request to evaluate one kernel with few trials."""
    return EvaluateRequest(kernel=code, num_trials=trials, timeout=timeout)


def compare(
    custom: KernelCode = ADDING_INTO,
    ref: KernelCode = ADDING,
    trials: int = 3,
    timeout: int = 30,
    **tolerances: float | None,
) -> CompareRequest:
    """A request to compare a kernel with its reference, with few trials."""
    return CompareRequest.model_validate(
        {
            "ref_kernel": ref.model_dump(),
            "custom_kernel": custom.model_dump(),
            "num_trials": trials,
            "timeout": timeout,
            **tolerances,
        }
    )
