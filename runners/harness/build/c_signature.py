"""Parses the parameters of CUDA kernels from source, and packs arguments in their types.

Sources: CUDA C++ Programming Guide, "Built-in Types"; the sizes are those of 64-bit Linux.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LINE_END = re.compile(r"\\\n")
_GLOBAL = re.compile(r"\b__global__\b")
_TEMPLATE = re.compile(r"\btemplate\s*<")
_ALIAS = re.compile(
    r"\busing\s+(?P<using>\w+)\s*=\s*(?P<used>[\w:\s]+);"
    r"|\btypedef\s+(?P<known>[\w:\s]+?)\s+(?P<typedef>\w+)\s*;"
    r"|^[ \t]*#[ \t]*define[ \t]+(?P<macro>\w+)[ \t]+(?P<text>[\w: \t]+)$",
    re.MULTILINE,
)
_HEAD_MOST = 2000
"""The most characters between a template's head and its kernel's `__global__`."""
_ALIASES_MOST = 8
"""The longest chain of type aliases."""
_BOUNDS = re.compile(
    r"\b(?:__launch_bounds__|__cluster_dims__|__maxnreg__|__attribute__|alignas)\s*\("
)
_QUALIFIER = re.compile(
    r"\b(?:const|volatile|constexpr|__restrict__|__restrict|restrict|__grid_constant__|struct"
    r"|std::|cuda::std::)(?:\b|(?<=:))"
)
_WORDS = frozenset(
    {"unsigned", "signed", "short", "int", "long", "char", "double", "float", "bool"}
)

_FORMATS = {
    "bool": "<?", "char": "<b", "signed char": "<b", "unsigned char": "<B",
    "short": "<h", "unsigned short": "<H", "int": "<i", "unsigned int": "<I",
    "long": "<q", "unsigned long": "<Q", "long long": "<q", "unsigned long long": "<Q",
    "float": "<f", "double": "<d", "__half": "<e", "half": "<e",
    "int8_t": "<b", "uint8_t": "<B", "int16_t": "<h", "uint16_t": "<H",
    "int32_t": "<i", "uint32_t": "<I", "int64_t": "<q", "uint64_t": "<Q",
    "size_t": "<Q", "ssize_t": "<q", "ptrdiff_t": "<q", "uint": "<I", "ulong": "<Q",
}  # fmt: skip
_BFLOAT = frozenset({"__nv_bfloat16", "nv_bfloat16", "bfloat16"})
_FRACTIONS = frozenset("fde")
_BY_SIZE = {
    (1, bool): "<?", (4, float): "<f", (8, float): "<d",
    (1, int): "<b", (2, int): "<h", (4, int): "<i", (8, int): "<q",
}  # fmt: skip
"""(Bytes of the parameter, type of the value) -> format, if the source does not show the type."""


Number = bool | int | float


class ArgumentError(ValueError):
    """An argument does not fit its parameter."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its type without qualifiers, and whether it is a pointer."""

    name: str
    type: str
    pointer: bool = False


class Declared(NamedTuple):
    """A kernel that a source declares."""

    name: str
    parameters: tuple[Parameter, ...]
    template: tuple[str, ...] = ()
    """The names of its template's parameters."""

    def instance(self, expression: str) -> "Declared":
        """The kernel with the template arguments of an instance, such as `scale<__half, 4>`."""
        _, opened, rest = expression.partition("<")
        given = _split(rest.rpartition(">")[0]) if opened else []
        types = {name: each.strip() for name, each in zip(self.template, given, strict=False)}
        return _resolved(self, types)


def kernels_in(source: str) -> list[Declared]:
    """Every `__global__` function of a source, in order, except those from macros."""
    text = _COMMENT.sub(" ", _LINE_END.sub(" ", source))
    aliases = _aliases(text)
    found: list[Declared] = []
    for mark in _GLOBAL.finditer(text):
        kernel = _declared(text, mark.end())
        if kernel is not None and all(kernel.name != each.name for each in found):
            template = _template(text[: mark.start()])
            own = {key: value for key, value in aliases.items() if key not in template}
            found.append(_resolved(kernel._replace(template=template), own))
    return found


def _aliases(text: str) -> dict[str, str]:
    """Simple type aliases: name -> type."""
    found: dict[str, str] = {}
    for each in _ALIAS.finditer(text):
        name = each["using"] or each["typedef"] or each["macro"]
        found[name] = each["used"] or each["known"] or each["text"]
    return found


def _resolved(kernel: Declared, types: Mapping[str, str]) -> Declared:
    return kernel._replace(parameters=tuple(_unaliased(each, types) for each in kernel.parameters))


def _unaliased(parameter: Parameter, types: Mapping[str, str]) -> Parameter:
    """The parameter with its type's aliases resolved; a pointer is unchanged."""
    kind = parameter.type
    for _ in range(_ALIASES_MOST):
        if kind not in types or parameter.pointer:
            break
        kind = " ".join(_QUALIFIER.sub(" ", types[kind]).split())
    return replace(parameter, type=kind)


def _template(text: str) -> tuple[str, ...]:
    """The parameter names of the template whose head is at the end of the text; () if none."""
    for head in _TEMPLATE.finditer(text, max(0, len(text) - _HEAD_MOST)):
        inside, closed, rest = _bracketed(text[head.end() :])
        if closed and not any(mark in rest for mark in ";{}"):
            names = (re.findall(r"[A-Za-z_]\w*", each.partition("=")[0]) for each in _split(inside))
            return tuple(words[-1] if words else "" for words in names)
    return ()


def _bracketed(text: str) -> tuple[str, bool, str]:
    """Split after an opening bracket: the text inside, whether it is closed, the text after it.

    A comparison inside must be in parentheses, as C++ requires.
    """
    place = next((at for at, _, level in _levels(text) if level < 0), None)
    return (text, False, "") if place is None else (text[:place], True, text[place + 1 :])


def _levels(text: str) -> Iterator[tuple[int, str, int]]:
    """Each character with its index and the bracket depth after it."""
    depth, angle_depth = 0, 0
    for place, letter in enumerate(text):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if depth == 0:
            angle_depth += {"<": 1, ">": -1}.get(letter, 0)
        yield place, letter, depth + angle_depth


def packed(parameter: Parameter | None, size: int | None, value: object) -> bytes:
    """The bytes of a scalar in its parameter's type; ArgumentError if it does not fit.

    `size` is the parameter's size in bytes according to the compiler, None if unknown.
    """
    name = "a parameter" if parameter is None else f"parameter `{parameter.name}`"
    if not isinstance(value, (bool, int, float)):
        raise ArgumentError(f"{name} cannot be given a {type(value).__name__}")
    if parameter and parameter.pointer and not isinstance(value, int):
        raise ArgumentError(f"{name} is a pointer, and cannot be given {value!r}")
    kind = _canonical(parameter.type) if parameter and not parameter.pointer else ""
    told = f"{name} of type {kind}" if kind else name
    try:
        if kind in _BFLOAT and size in (None, 2):
            return _bfloat16_bytes(float(value))
        layout = _layout(kind, size, value)
        if layout is None:
            raise ArgumentError(f"{told} with {size} bytes cannot be given {value!r}{_hint(size)}")
        return struct.pack(layout, _fitting(layout, value))
    except (struct.error, OverflowError) as error:
        raise ArgumentError(f"{told} cannot hold {value!r}") from error


def _hint(size: int | None) -> str:
    halves = "; write its type as __half or __nv_bfloat16, so that it is known which one it is"
    return halves if size == struct.calcsize("<e") else ""


def _layout(kind: str, size: int | None, value: Number) -> str | None:
    layout = _FORMATS.get(kind)
    if layout is not None and size in (None, struct.calcsize(layout)):
        return layout
    if size is None:
        size = 1 if isinstance(value, bool) else 4
    numbers = int if isinstance(value, bool) else type(value)
    return _BY_SIZE.get((size, type(value))) or _BY_SIZE.get((size, numbers))


def _fitting(layout: str, value: Number) -> Number:
    if layout[1] in _FRACTIONS:
        return float(value)
    if layout[1] == "?":
        return bool(value)
    if value != int(value):
        raise ArgumentError(f"{value!r} is no whole number, which its parameter wants")
    return int(value)


def _bfloat16_bytes(value: float) -> bytes:
    """The nearest bfloat16, ties to even: the upper half of a float32."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:  # noqa: PLR0124 - rounding could turn a NaN into another value
        return b"\xc0\x7f"
    return struct.pack("<H", (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 & 0xFFFF)


def _declared(text: str, place: int) -> Declared | None:
    """The function declared at `place`; None if it cannot be parsed."""
    head_end = text.find("(", place)
    while bounds := _BOUNDS.search(text, place):
        if bounds.end() - 1 > head_end:
            break
        place = _closing(text, bounds.end() - 1) + 1
        head_end = text.find("(", place)
    if head_end < 0:
        return None
    words = re.findall(r"[A-Za-z_]\w*", text[place:head_end])
    if not words:
        return None
    end = _closing(text, head_end)
    return Declared(words[-1], _parameters(text[head_end + 1 : end]))


def _closing(text: str, opening: int) -> int:
    """The index of the matching closing parenthesis; the end of the text if there is none."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text)


def _parameters(text: str) -> tuple[Parameter, ...]:
    return tuple(_parameter(part) for part in _split(text) if part.strip() not in ("", "void"))


def _split(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts = [""]
    for _, letter, level in _levels(text):
        if letter == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _parameter(text: str) -> Parameter:
    plain = _QUALIFIER.sub(" ", text.partition("=")[0])
    pointer = "*" in plain or "[" in plain
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[^\]]*\]", " ", plain).replace("*", " "))
    unnamed = len(words) < 2 or words[-1] in _WORDS
    name = "" if unnamed else words[-1]
    return Parameter(name, " ".join(words if unnamed else words[:-1]), pointer)


def _canonical(kind: str) -> str:
    """The canonical spelling of an integer type."""
    words = kind.split()
    if not set(words) <= _WORDS or "double" in words or "float" in words or "bool" in words:
        return kind.removeprefix("std ").strip()
    sign = "unsigned " if "unsigned" in words else ""
    if "char" in words:
        return sign + "char"
    if "short" in words:
        return sign + "short"
    longs = words.count("long")
    return sign + (" ".join(["long"] * min(longs, 2)) if longs else "int")
