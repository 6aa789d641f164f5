"""The IOContract: a kernel's arguments, and how each tensor is created.

Unknown keys are ignored in these types, as by the evaluation server. Meaningless values that it
accepts (an unknown dtype, a dimension of 0, a step of 0) are refused.
"""

import base64
import binascii
import math
import zlib
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from runners.contract.io_contract import NAME_MOST

MAX_ARGS = 128
MAX_DIMENSIONS = 16
MAX_ELEMENTS = 2**34
"""The most elements of one tensor; the judge checks whether it fits into a GPU's memory."""
MAX_DATA_BYTES = 16 * 2**20
"""The most bytes of one literal tensor, uncompressed."""
MAX_LITERAL_BYTES = 32 * 2**20
"""The most bytes of all literal tensors of a contract, uncompressed, by their dtype and shape."""
MAX_THREADS = 1024

Dtype = Literal[
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"
]
ITEM_BYTES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
Dimension = Annotated[int, Field(ge=1, le=MAX_ELEMENTS)]
Shape = Annotated[tuple[Dimension, ...], Field(max_length=MAX_DIMENSIONS)]
Scalar = bool | int | float | str
_NUMBERS = range(-(2**63), 2**64)
"""The integers that some parameter type can hold."""
_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
}


class ContractModel(BaseModel):
    """A frozen part of an IOContract; its numbers are finite."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class TensorInit(ContractModel):
    """How a tensor is filled: a distribution with an optional seed, a value, or `arange`."""

    kind: Literal["randn", "uniform", "zeros", "ones", "full", "arange"] = "randn"
    seed: int | None = None
    mean: float | None = None
    std: float | None = None
    low: float | None = None
    high: float | None = None
    fill_value: bool | int | float | None = None
    start: float | None = None
    step: float | None = None

    @model_validator(mode="after")
    def _has_possible_values(self) -> Self:
        if self.kind == "arange" and self.step == 0:
            raise ValueError("the step of an arange must not be 0")
        bounded = self.low is not None and self.high is not None
        if self.kind == "uniform" and bounded and (self.low or 0) > (self.high or 0):
            raise ValueError("low is above high")
        if self.std is not None and self.std < 0:
            raise ValueError("std is below 0")
        _require_64_bits("fill_value", self.fill_value)
        return self


class TensorData(ContractModel):
    """Literal values: base64 of the bytes in C order and little-endian, perhaps zlib-packed.

    `IOContract` checks the bytes against dtype and shape, after it has checked the total size.
    """

    data_b64: str
    dtype: Dtype = "float32"
    shape: Shape = ()
    compress: Literal["none", "zlib"] = "none"

    @property
    def size(self) -> int:
        """Bytes of the values, from dtype and shape."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]

    def require_filled(self) -> None:
        """ValueError if the data does not have the size of its shape."""
        size = len(self.raw())
        if size != self.size:
            raise ValueError(
                f"{size} bytes of data; shape {list(self.shape)} of {self.dtype} takes {self.size}"
            )

    def raw(self) -> bytes:
        """Return the values' bytes; ValueError if they cannot be decompressed or are too many."""
        if self.size > MAX_DATA_BYTES:
            raise ValueError(f"literal data has at most {MAX_DATA_BYTES:,} bytes")
        try:
            packed = base64.b64decode(self.data_b64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError("data_b64 is not base64") from error
        if self.compress == "none":
            return packed
        unpacking = zlib.decompressobj()
        try:
            values = unpacking.decompress(packed, self.size + 1)
        except zlib.error as error:
            raise ValueError("data_b64 is not packed by zlib") from error
        if len(values) > self.size or not unpacking.eof:
            raise ValueError(f"the data is incomplete, or has more than {self.size:,} bytes")
        return values


class TensorSpec(ContractModel):
    """One tensor; `data`, with its own dtype and shape, takes precedence over `init`.

    Without either, an input is drawn by `randn`.
    """

    shape: Shape = ()
    dtype: Dtype = "float32"
    init: TensorInit | None = None
    data: TensorData | None = None

    @field_validator("shape")
    @classmethod
    def _is_not_too_large(cls, shape: tuple[int, ...]) -> tuple[int, ...]:
        if math.prod(shape) > MAX_ELEMENTS:
            raise ValueError(f"a tensor has at most {MAX_ELEMENTS:,} elements")
        return shape


class ArgSpec(ContractModel):
    """One positional argument of the call; a tensor has a spec, everything else has a value."""

    name: Annotated[str, Field(max_length=NAME_MOST)]
    type: Literal["tensor", "int", "float", "str", "bool"]
    value: Scalar | None = None
    tensor_spec: TensorSpec | None = None
    role: Literal["input", "output", "inout"] = "input"
    is_meta: bool = False

    @model_validator(mode="after")
    def _has_the_value_of_its_type(self) -> Self:
        if self.type == "tensor":
            if self.tensor_spec is None:
                raise ValueError(f"tensor {self.name!r} needs a tensor_spec")
            return self
        if self.value is None:
            raise ValueError(f"{self.type} {self.name!r} needs a value")
        fits = isinstance(self.value, _KINDS[self.type])
        if not fits or (isinstance(self.value, bool) and self.type != "bool"):
            raise ValueError(f"the value of {self.name!r} is no {self.type}")
        _require_64_bits(f"the value of {self.name!r}", self.value)
        return self


class Dim(ContractModel):
    """The extent of a grid or a block."""

    x: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    y: Annotated[int, Field(ge=1, le=65_535)] = 1
    z: Annotated[int, Field(ge=1, le=65_535)] = 1

    @property
    def size(self) -> int:
        """Return the product of its extents."""
        return self.x * self.y * self.z


class LaunchConfig(ContractModel):
    """How a kernel is launched: grid and block, and for Triton warps and stages."""

    grid: Dim | None = None
    block: Dim | None = None
    num_warps: Literal[1, 2, 4, 8, 16, 32] | None = None
    num_stages: Annotated[int, Field(ge=1, le=64)] | None = None

    @field_validator("block")
    @classmethod
    def _fits_a_multiprocessor(cls, block: Dim | None) -> Dim | None:
        if block is not None and block.size > MAX_THREADS:
            raise ValueError(f"a block has at most {MAX_THREADS} threads")
        return block


class IOContract(ContractModel):
    """All arguments of the call in their order, and how it is launched."""

    args: Annotated[tuple[ArgSpec, ...], Field(max_length=MAX_ARGS)]
    launch: LaunchConfig | None = None

    @field_validator("args")
    @classmethod
    def _have_unique_names(cls, args: tuple[ArgSpec, ...]) -> tuple[ArgSpec, ...]:
        names = [arg.name for arg in args]
        duplicate = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if duplicate is not None:
            raise ValueError(f"two arguments are named {duplicate!r}")
        return args

    @field_validator("args")
    @classmethod
    def _have_data_of_their_size(cls, args: tuple[ArgSpec, ...]) -> tuple[ArgSpec, ...]:
        """Check the total size first, because decompressing the largest body takes minutes."""
        given = [(arg.name, arg.tensor_spec.data) for arg in args if arg.tensor_spec is not None]
        literal = [(name, data) for name, data in given if data is not None]
        if sum(data.size for _, data in literal) > MAX_LITERAL_BYTES:
            raise ValueError(f"all literal data has at most {MAX_LITERAL_BYTES:,} bytes together")
        for name, data in literal:
            try:
                data.require_filled()
            except ValueError as error:
                raise ValueError(f"tensor {name!r}: {error}") from error
        return args


def _require_64_bits(what: str, value: Scalar | None) -> None:
    if isinstance(value, int) and value not in _NUMBERS:
        raise ValueError(f"{what} has more than 64 bits")
