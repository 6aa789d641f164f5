"""Kernels that are called by an IOContract: what with, how, and what they are compared with.

A task of format `io_contract` has `CONTRACT` among its files, which the judge alone reads, and
`CALL`, which tells a candidate how its own kernel is called. Neither is a program.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from runners.contract.task import Workload
from runners.contract.wire import Wire

CONTRACT, CALL = "contract.json", "call.json"
KERNEL = "kernel"
"""The argument of a case that says which kernel it is for; the judged one where it is not there."""
GIVEN_SEED = 0
"""The seed of the case whose tensors are drawn by the contract's own seeds, as they are written."""
REFERENCE_FAULT = "the reference kernel"
"""How the message of a verdict begins that is the reference's fault and not the judged kernel's."""

NAME_MOST = 1000
"""Characters of a name, and of a compiler's option."""
Name = Annotated[str, StringConstraints(max_length=NAME_MOST)]
Extent = Annotated[int, Field(ge=0, le=1 << 48)]
Extents = tuple[int, int, int]


class KernelKind(StrEnum):
    """How a source is loaded and called."""

    TORCH = "torch"
    """A function, a method, or `Model` with its `get_inputs`."""
    TORCH_CUDA = "torch_cuda"
    """The same with CUDA that is compiled inline; its model is `ModelNew`."""
    TRITON = "triton"
    """One Triton kernel, launched with all arguments."""
    CUDA = "cuda"
    """One `__global__` function, launched with all arguments."""
    MULTI_KERNEL = "multi_kernel"
    """A Python function that is called with all arguments."""


PYTHON_KINDS = frozenset({KernelKind.TORCH, KernelKind.TORCH_CUDA})
"""Those that can do without arguments, since their source may tell its own inputs."""
DEVICE_KINDS = frozenset({KernelKind.TRITON, KernelKind.CUDA})
"""Those that are launched on a GPU and run nowhere else."""


class Side(StrEnum):
    """One of the two kernels of a comparison."""

    CUSTOM = "custom"
    """The one that is judged."""
    REFERENCE = "reference"
    """The one that it is compared with; a stranger's code as well."""


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
    """How a tensor is drawn; a number that is not said is the usual one of its kind."""

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
    """The values themselves: base64 of their bytes, in C order and little-endian."""

    data: str
    zipped: bool = False


class TensorArgument(Wire):
    """A tensor: drawn, or literal; an output with neither holds nothing that may be counted on."""

    kind: Literal["tensor"] = "tensor"
    name: Name
    role: Role = Role.INPUT
    dtype: Annotated[str, Field(max_length=32)]
    shape: Annotated[tuple[Extent, ...], Field(max_length=16)] = ()
    fill: Fill | None = None
    literals: Literals | None = None


class ContractScalar(Wire):
    """A value that is passed as it is; a CUDA kernel's in the type that it declares."""

    kind: Literal["scalar"] = "scalar"
    name: Name
    value: bool | int | float | str
    meta: bool = False
    """A compile-time constant of Triton's."""


Argument = Annotated[TensorArgument | ContractScalar, Field(discriminator="kind")]


class KernelCall(Wire):
    """One kernel and its call; `args` is None where the source tells its own inputs."""

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
    """Of the compiler of a CUDA kernel."""
    expressions: tuple[Name, ...] = ()
    """Instances of a CUDA template, as in `scale<float>`."""

    def bare(self) -> "KernelCall":
        """The same without values of tensors, which are nothing for a candidate to know."""
        if self.args is None:
            return self
        args = tuple(_bare(arg) for arg in self.args)
        return self.model_copy(update={"args": args})


def _bare(argument: TensorArgument | ContractScalar) -> TensorArgument | ContractScalar:
    if isinstance(argument, ContractScalar):
        return argument
    return argument.model_copy(update={"fill": None, "literals": None})


class ReferenceKernel(Wire):
    """What a kernel's outputs are compared with, and how closely."""

    call: KernelCall
    source: str
    file_name: str
    atol: Annotated[float, Field(ge=0)]
    rtol: Annotated[float, Field(ge=0)]


COUNTERS = {Side.CUSTOM: "custom.csv", Side.REFERENCE: "reference.csv"}
"""Among the files of an evaluation: what `ncu` counted of one call, a row for each kernel."""

UNCOUNTED = "no kernel was counted by ncu: "
"""How the line of the log begins that says why there are no counters."""

DRAWN = "the kernel was called with "
"""How the line of the log begins that names the inputs which a source told, or which were tried."""


class Contract(Wire):
    """All that the judge is told of a kernel, and of its reference where it has one."""

    custom: KernelCall
    reference: ReferenceKernel | None = None
    drawn_by: Side = Side.CUSTOM
    """Whose source tells the inputs, where there are no arguments."""
    counted: bool = False
    """Whether `ncu` is to count as well, where it may, once all is timed."""

    def call_of(self, side: Side) -> KernelCall:
        """How a side's kernel is called."""
        if side is Side.REFERENCE and self.reference is not None:
            return self.reference.call
        return self.custom
