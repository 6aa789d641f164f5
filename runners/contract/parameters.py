"""A kernel's parameters: pointers to tensors, and numbers from formulas, with their C types."""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from runners.contract.formula import Formula, FormulaError, Number, parse_formula
from runners.contract.task import ArgValue
from runners.contract.wire import Wire

POINTER = "pointer"
"""The type of a parameter that is a tensor."""
_POINTER_BYTES = 8
_BUFFER = re.compile(r"(in|out)(0|[1-9]\d?)", re.ASCII)
_TYPED = re.compile(r"([a-z]+\d*)\s+(.+)", re.ASCII)


class ScalarType(StrEnum):
    """The C type of a parameter that is a number."""

    BOOL = "bool"
    """One byte."""
    INT = "int"
    """Signed 32 bits; the default type of integers."""
    UINT = "uint"
    """Unsigned 32 bits."""
    INT64 = "int64"
    """Signed 64 bits."""
    UINT64 = "uint64"
    """Unsigned 64 bits."""
    FLOAT = "float"
    """Single precision; the default type of other numbers."""
    DOUBLE = "double"
    """Double precision."""


_LAYOUT = {
    ScalarType.BOOL: "<?",
    ScalarType.INT: "<i",
    ScalarType.UINT: "<I",
    ScalarType.INT64: "<q",
    ScalarType.UINT64: "<Q",
    ScalarType.FLOAT: "<f",
    ScalarType.DOUBLE: "<d",
}
_FRACTIONS = (ScalarType.FLOAT, ScalarType.DOUBLE)


class BufferArgument(Wire):
    """A pointer to a tensor of the input or output, by its index there."""

    kind: Literal["in", "out"]
    index: Annotated[int, Field(ge=0, le=99)]


class LaunchScalar(Wire):
    """The bytes of a number, in hexadecimal."""

    kind: Literal["scalar"] = "scalar"
    data: Annotated[str, Field(pattern=r"^([0-9a-f]{2}){1,8}$")]


Argument = Annotated[BufferArgument | LaunchScalar, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A parameter that is a number; if `type` is None, the value decides it."""

    formula: Formula
    type: ScalarType | None

    def pack(self, args: Mapping[str, ArgValue]) -> tuple[ScalarType, bytes]:
        """Return its type and bytes for a case; FormulaError if the type cannot hold the value."""
        number = self.formula.number(args)
        kind = self.type or _default_type(number)
        value = float(number) if kind in _FRACTIONS else as_integer(number, self.formula.text)
        try:
            return kind, struct.pack(_LAYOUT[kind], value)
        except (struct.error, OverflowError) as error:
            types = ", ".join(ScalarType)
            raise FormulaError(
                f"{self.formula.text!r} is {number}, too large for {kind}; name another type"
                f" before it: {types}"
            ) from error


Parameter = BufferArgument | Scalar


def parse_parameter(text: str) -> Parameter:
    """Parse a parameter of task.yml; FormulaError if it is invalid."""
    buffer = _BUFFER.fullmatch(text.strip())
    if buffer:
        kind: Literal["in", "out"] = "in" if buffer[1] == "in" else "out"
        return BufferArgument(kind=kind, index=int(buffer[2]))
    typed = _TYPED.fullmatch(text.strip())
    try:
        if typed and typed[1] in set(ScalarType):
            return Scalar(parse_formula(typed[2]), ScalarType(typed[1]))
        return Scalar(parse_formula(text), None)
    except FormulaError as error:
        types = ", ".join(ScalarType)
        raise FormulaError(
            f"{text!r} is neither in0, in1, ..., nor out0, out1, ..., nor a formula, which may "
            f"have a type before it ({types}): {error}"
        ) from error


def _default_type(number: Number) -> ScalarType:
    if isinstance(number, bool):
        return ScalarType.BOOL
    return ScalarType.INT if isinstance(number, int) else ScalarType.FLOAT


def as_integer(number: Number, text: str) -> int:
    """A formula's value as an integer; FormulaError if it has a fraction."""
    if number != int(number):
        raise FormulaError(f"{text!r} is {number:g}, not a whole number; // rounds down")
    return int(number)


def bytes_of(kind: str) -> int:
    """The size in bytes of a parameter of this type."""
    return _POINTER_BYTES if kind == POINTER else struct.calcsize(_LAYOUT[ScalarType(kind)])
