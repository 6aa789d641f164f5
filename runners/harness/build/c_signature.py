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
_MAX_TEMPLATE_HEAD = 2000
"""The most characters from `template <` to `__global__`."""
_MAX_ALIASES = 8
"""The longest chain of type aliases."""
_ATTRIBUTE = re.compile(
    r"\b(?:__launch_bounds__|__cluster_dims__|__maxnreg__|__attribute__|alignas)\s*\("
)
_QUALIFIER = re.compile(
    r"\b(?:const|volatile|constexpr|__restrict__|__restrict|restrict|__grid_constant__|struct"
    r"|std::|cuda::std::)(?:\b|(?<=:))"
)
_TYPE_WORDS = frozenset(
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
_BFLOAT16_TYPES = frozenset({"__nv_bfloat16", "nv_bfloat16", "bfloat16"})
_FLOAT_CODES = frozenset("fde")
_FORMATS_BY_SIZE = {
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


class KernelDeclaration(NamedTuple):
    """A kernel that a source declares."""

    name: str
    parameters: tuple[Parameter, ...]
    template: tuple[str, ...] = ()
    """The names of its template's parameters."""

    def instance(self, expression: str) -> "KernelDeclaration":
        """The kernel with its template's parameters replaced, as in `scale<__half, 4>`."""
        _, bracket, rest = expression.partition("<")
        arguments = _split(rest.rpartition(">")[0]) if bracket else []
        types = {
            name: argument.strip() for name, argument in zip(self.template, arguments, strict=False)
        }
        return _resolve_aliases(self, types)


def find_kernels(source: str) -> list[KernelDeclaration]:
    """Every `__global__` function of a source, in order, except those that a macro defines."""
    text = _COMMENT.sub(" ", _LINE_END.sub(" ", source))
    aliases = _aliases(text)
    kernels: list[KernelDeclaration] = []
    for match in _GLOBAL.finditer(text):
        kernel = _parse_declaration(text, match.end())
        if kernel is not None and all(kernel.name != other.name for other in kernels):
            template = _template_parameters(text[: match.start()])
            own = {key: value for key, value in aliases.items() if key not in template}
            kernels.append(_resolve_aliases(kernel._replace(template=template), own))
    return kernels


def _aliases(text: str) -> dict[str, str]:
    """Simple type aliases: name -> type."""
    aliases: dict[str, str] = {}
    for match in _ALIAS.finditer(text):
        name = match["using"] or match["typedef"] or match["macro"]
        aliases[name] = match["used"] or match["known"] or match["text"]
    return aliases


def _resolve_aliases(kernel: KernelDeclaration, types: Mapping[str, str]) -> KernelDeclaration:
    return kernel._replace(
        parameters=tuple(_resolve_alias(parameter, types) for parameter in kernel.parameters)
    )


def _resolve_alias(parameter: Parameter, types: Mapping[str, str]) -> Parameter:
    """The parameter with its type's aliases resolved; a pointer is unchanged."""
    kind = parameter.type
    for _ in range(_MAX_ALIASES):
        if kind not in types or parameter.pointer:
            break
        kind = " ".join(_QUALIFIER.sub(" ", types[kind]).split())
    return replace(parameter, type=kind)


def _template_parameters(text: str) -> tuple[str, ...]:
    """The parameter names of the template whose head is at the end of the text; () if none."""
    for head in _TEMPLATE.finditer(text, max(0, len(text) - _MAX_TEMPLATE_HEAD)):
        inside, closed, rest = _split_at_closing(text[head.end() :])
        if closed and not any(character in rest for character in ";{}"):
            names = (
                re.findall(r"[A-Za-z_]\w*", parameter.partition("=")[0])
                for parameter in _split(inside)
            )
            return tuple(words[-1] if words else "" for words in names)
    return ()


def _split_at_closing(text: str) -> tuple[str, bool, str]:
    """Split the text after an opening bracket: the text inside, whether it is closed, and the rest.

    A comparison inside must be in parentheses, as C++ requires.
    """
    end = next((index for index, _, level in _levels(text) if level < 0), None)
    return (text, False, "") if end is None else (text[:end], True, text[end + 1 :])


def _levels(text: str) -> Iterator[tuple[int, str, int]]:
    """Each character with its index and the bracket depth after it."""
    depth, angle_depth = 0, 0
    for index, character in enumerate(text):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        if depth == 0:
            angle_depth += {"<": 1, ">": -1}.get(character, 0)
        yield index, character, depth + angle_depth


def pack_scalar(parameter: Parameter | None, size: int | None, value: object) -> bytes:
    """The bytes of a scalar in its parameter's type; ArgumentError if it does not fit.

    `size` is the parameter's size in bytes according to the compiler, None if unknown.
    """
    name = "a parameter" if parameter is None else f"parameter `{parameter.name}`"
    if not isinstance(value, (bool, int, float)):
        raise ArgumentError(f"{name} cannot be given a {type(value).__name__}")
    if parameter and parameter.pointer and not isinstance(value, int):
        raise ArgumentError(f"{name} is a pointer, and cannot be given {value!r}")
    kind = _canonical_type(parameter.type) if parameter and not parameter.pointer else ""
    described = f"{name} of type {kind}" if kind else name
    try:
        if kind in _BFLOAT16_TYPES and size in (None, 2):
            return _bfloat16_bytes(float(value))
        code = _format_of(kind, size, value)
        if code is None:
            raise ArgumentError(
                f"{described} with {size} bytes cannot be given {value!r}{_hint(size)}"
            )
        return struct.pack(code, _converted(code, value))
    except (struct.error, OverflowError) as error:
        raise ArgumentError(f"{described} cannot hold {value!r}") from error


def _hint(size: int | None) -> str:
    hint = "; write its type as __half or __nv_bfloat16, which its size does not tell apart"
    return hint if size == struct.calcsize("<e") else ""


def _format_of(kind: str, size: int | None, value: Number) -> str | None:
    code = _FORMATS.get(kind)
    if code is not None and size in (None, struct.calcsize(code)):
        return code
    if size is None:
        size = 1 if isinstance(value, bool) else 4
    number_type = int if isinstance(value, bool) else type(value)
    return _FORMATS_BY_SIZE.get((size, type(value))) or _FORMATS_BY_SIZE.get((size, number_type))


def _converted(code: str, value: Number) -> Number:
    if code[1] in _FLOAT_CODES:
        return float(value)
    if code[1] == "?":
        return bool(value)
    if value != int(value):
        raise ArgumentError(f"{value!r} is not a whole number, which its parameter needs")
    return int(value)


def _bfloat16_bytes(value: float) -> bytes:
    """The nearest bfloat16, ties to even: the upper half of a float32."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:  # noqa: PLR0124 - rounding could turn a NaN into another value
        return b"\xc0\x7f"
    return struct.pack("<H", (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 & 0xFFFF)


def _parse_declaration(text: str, start: int) -> KernelDeclaration | None:
    """The function declared at `start`; None if it cannot be parsed."""
    head_end = text.find("(", start)
    while attribute := _ATTRIBUTE.search(text, start):
        if attribute.end() - 1 > head_end:
            break
        start = _closing(text, attribute.end() - 1) + 1
        head_end = text.find("(", start)
    if head_end < 0:
        return None
    names = re.findall(r"[A-Za-z_]\w*", text[start:head_end])
    if not names:
        return None
    end = _closing(text, head_end)
    return KernelDeclaration(names[-1], _parameters(text[head_end + 1 : end]))


def _closing(text: str, opening: int) -> int:
    """The index of the closing parenthesis for the opening one; the text's length if none."""
    depth = 0
    for index in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index
    return len(text)


def _parameters(text: str) -> tuple[Parameter, ...]:
    return tuple(_parameter(part) for part in _split(text) if part.strip() not in ("", "void"))


def _split(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts = [""]
    for _, character, level in _levels(text):
        if character == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _parameter(text: str) -> Parameter:
    plain = _QUALIFIER.sub(" ", text.partition("=")[0])
    pointer = "*" in plain or "[" in plain
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[^\]]*\]", " ", plain).replace("*", " "))
    unnamed = len(words) < 2 or words[-1] in _TYPE_WORDS
    name = "" if unnamed else words[-1]
    return Parameter(name, " ".join(words if unnamed else words[:-1]), pointer)


def _canonical_type(kind: str) -> str:
    """An integer type by its usual name, such as `unsigned long`; any other type as it is."""
    words = kind.split()
    if not set(words) <= _TYPE_WORDS or "double" in words or "float" in words or "bool" in words:
        return kind.removeprefix("std ").strip()
    sign = "unsigned " if "unsigned" in words else ""
    if "char" in words:
        return sign + "char"
    if "short" in words:
        return sign + "short"
    longs = words.count("long")
    return sign + (" ".join(["long"] * min(longs, 2)) if longs else "int")
