"""Tasks of format `io_contract`: a kernel's arguments, its call and its reference.

Such a task has two JSON files: `CONTRACT`, which only the judge reads, and `CALL`, which defines
for a candidate how its kernel is called.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from runners.contract.task import Workload
from runners.contract.wire import Wire

CONTRACT, CALL = "contract.json", "call.json"
KERNEL = "kernel"
"""The argument of a case that names its kernel; without it, the judged kernel."""
GIVEN_SEED = 0
"""The seed of the case that uses the contract's own seeds unchanged."""
REFERENCE_FAULT = "the reference kernel"
"""The beginning of a verdict's message if the reference is at fault, not the judged kernel."""

NAME_MOST = 1000
"""The most characters of a name and of a compiler option."""
Name = Annotated[str, StringConstraints(max_length=NAME_MOST)]
Extent = Annotated[int, Field(ge=0, le=1 << 48)]
Extents = tuple[int, int, int]


class KernelKind(StrEnum):
    """How a source is loaded and called."""

    TORCH = "torch"
    """A function, a method, or `Model` with its `get_inputs`."""
    TORCH_CUDA = "torch_cuda"
    """Like `torch`, with inline CUDA; its model is `ModelNew`."""
    TRITON = "triton"
    """One Triton kernel, launched with all arguments."""
    CUDA = "cuda"
    """One `__global__` function, launched with all arguments."""
    MULTI_KERNEL = "multi_kernel"
    """A Python function that is called with all arguments."""


PYTHON_KINDS = frozenset({KernelKind.TORCH, KernelKind.TORCH_CUDA})
"""The kinds that need no arguments, because their source may define its own inputs."""
DEVICE_KINDS = frozenset({KernelKind.TRITON, KernelKind.CUDA})
"""The kinds that only run on a GPU."""


class Side(StrEnum):
    """One of the two kernels of a comparison."""

    CUSTOM = "custom"
    """The judged kernel."""
    REFERENCE = "reference"
    """The kernel that it is compared with; untrusted too."""


def side_of(workload: Workload) -> Side:
    """Return which kernel a case is for."""
    return Side(str(workload.args.get(KERNEL, Side.CUSTOM.value)))


class Role(StrEnum):
    """What a kernel does with a tensor."""

    INPUT = "input"
    """Reads it."""
    OUTPUT = "output"
    """Writes all of it."""
    INOUT = "inout"
    """Reads it and writes to it."""


class Fill(Wire):
    """How a tensor is filled; an omitted number has the default of its kind."""

    kind: Literal["randn", "uniform", "zeros", "ones", "full", "arange"] = "randn"
    seed: int | None = None
    mean: float | None = None
    std: float | None = None
    low: float | None = None
    high: float | None = None
    value: bool | int | float | None = None
    start: float | None = None
    step: float | None = None


class Literals(Wire):
    """Literal values: base64 of their bytes, in C order and little-endian."""

    data: str
    zipped: bool = False


class TensorArgument(Wire):
    """A tensor with a fill or literals; an output without either has undefined content."""

    kind: Literal["tensor"] = "tensor"
    name: Name
    role: Role = Role.INPUT
    dtype: Annotated[str, Field(max_length=32)]
    shape: Annotated[tuple[Extent, ...], Field(max_length=16)] = ()
    fill: Fill | None = None
    literals: Literals | None = None


class ContractScalar(Wire):
    """A scalar argument; a CUDA kernel gets it in its parameter's type."""

    kind: Literal["scalar"] = "scalar"
    name: Name
    value: bool | int | float | str
    meta: bool = False
    """Whether it is a compile-time constant (Triton)."""


Argument = Annotated[TensorArgument | ContractScalar, Field(discriminator="kind")]


class KernelCall(Wire):
    """One kernel and its call; `args` is None if the source defines its own inputs."""

    kind: KernelKind
    args: tuple[Argument, ...] | None = None
    grid: Extents = (1, 1, 1)
    block: Extents = (256, 1, 1)
    num_warps: int | None = None
    num_stages: int | None = None
    function_name: Name | None = None
    class_name: Name | None = None
    method_name: Name | None = None
    kernel_name: Name | None = None
    entry_point: Name | None = None
    options: tuple[Name, ...] = ()
    """Compiler options of a CUDA kernel."""
    expressions: tuple[Name, ...] = ()
    """Instances of a CUDA template, as in `scale<float>`."""

    def bare(self) -> "KernelCall":
        """The call without the values of tensors, which a candidate must not know."""
        if self.args is None:
            return self
        args = tuple(_bare(arg) for arg in self.args)
        return self.model_copy(update={"args": args})


def _bare(argument: TensorArgument | ContractScalar) -> TensorArgument | ContractScalar:
    if isinstance(argument, ContractScalar):
        return argument
    return argument.model_copy(update={"fill": None, "literals": None})


class ReferenceKernel(Wire):
    """The reference of a kernel, and the tolerances of the comparison."""

    call: KernelCall
    source: str
    file_name: str
    atol: Annotated[float, Field(ge=0)]
    rtol: Annotated[float, Field(ge=0)]


COUNTERS = {Side.CUSTOM: "custom.csv", Side.REFERENCE: "reference.csv"}
"""Names of evaluation files with the `ncu` counters of one call, one row per kernel."""

UNCOUNTED = "no kernel was counted by ncu: "
"""The beginning of the log line that says why there are no counters."""

DRAWN = "the kernel was called with "
"""The beginning of the log line with the inputs that a source defined or that were guessed."""


class Contract(Wire):
    """The judge's full description of a kernel and its reference, if any."""

    custom: KernelCall
    reference: ReferenceKernel | None = None
    drawn_by: Side = Side.CUSTOM
    """The side whose source defines the inputs, if there are no arguments."""
    counted: bool = False
    """Whether to collect `ncu` counters after timing, if permitted."""

    def call_of(self, side: Side) -> KernelCall:
        """The call of a side's kernel."""
        if side is Side.REFERENCE and self.reference is not None:
            return self.reference.call
        return self.custom
