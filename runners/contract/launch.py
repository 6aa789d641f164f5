"""Computes a kernel's launch for one case from the task's formulas and a submission's header.

The computation is arithmetic over the arguments of the case; it runs outside the submission's
process. The limits are from the CUDA C++ programming guide, "Technical Specifications per Compute
Capability".
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Self

from pydantic import Field

from runners.contract.formula import MAX_LENGTH, Formula, FormulaError, parse_formula
from runners.contract.parameters import (
    POINTER,
    Argument,
    BufferArgument,
    LaunchScalar,
    Parameter,
    as_integer,
    bytes_of,
    parse_parameter,
)
from runners.contract.task import ArgValue, Launch, Workload
from runners.contract.wire import Wire

_COMMENTS = ("#", "//")
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
"""The characters at which `str.splitlines` ends a line."""


def header_lines(
    source: str, markers: tuple[str, ...], comments: tuple[str, ...] = _COMMENTS
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number (from 1) and the words of each header line before the first line of code.

    A header line begins with one of these `markers`; `comments` are the prefixes of a comment.
    Other comments are only scanned: a source may have 300,000 of them.
    """
    number, counted = 1, 0
    for found in _header_pattern(markers, comments).finditer(source):
        if found["words"] is None:
            return
        start = found.start("words")
        number += len(f"{source[counted:start]}.".splitlines()) - 1
        counted = start
        yield number, found["words"].split()


@cache
def _header_pattern(markers: tuple[str, ...], comments: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for each header line (group `words`) and for the first character of code.

    It reads each run of white space once. It has no possessive group: Python up to 3.11.4 matches
    some of them wrongly.
    """
    marker, comment = ("|".join(map(re.escape, each)) for each in (markers, comments))
    line_begins = rf"(?:\A|(?<=\S)[^\S{_BREAKS}]*+[{_BREAKS}])\s*+"
    header = rf"(?=(?P<words>(?:{marker})(?!\S)[^{_BREAKS}]*))\S"
    return re.compile(rf"{line_begins}(?:{header}|(?!{comment})\S)")


MARKER = "//!PODIUM"
"""The beginning of a header line that overrides a part of the task's launch."""
OVERRIDES = ("block", "grid", "shared")
"""The keys of such a line, in the order of their evaluation."""
MAX_THREADS = 1024
MAX_SHARED = 227 << 10
"""The most bytes of dynamic shared memory of a block; older cards have less."""
MAX_PARAMETERS = 64
MAX_NAME = 200
_MOST = {"block": (1024, 1024, 64), "grid": ((1 << 31) - 1, 65535, 65535), "shared": (MAX_SHARED,)}
_LONGEST_SIZES = 4 * MAX_LENGTH
"""The most characters of three formulas with their separators."""
_BLOCK_NAMES = ("block_x", "block_y", "block_z")
_SEED = "seed"
_KERNEL = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*", re.ASCII)


class LaunchError(ValueError):
    """A launch that cannot be computed; `key` is the faulty key of `launch`."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


Axis = Annotated[int, Field(ge=1, lt=1 << 31)]


class LaunchNumbers(Wire):
    """One computed launch: sizes in x, y, z; dynamic shared memory in bytes; ordered arguments."""

    grid: tuple[Axis, Axis, Axis]
    block: tuple[Axis, Axis, Axis]
    shared: Annotated[int, Field(ge=0, le=MAX_SHARED)] = 0
    arguments: tuple[Argument, ...] = ()


class Signature(Wire):
    """What a submission must define: the kernel's name, its parameters, their sizes in bytes."""

    kernel: str
    parameters: tuple[str, ...]
    """The parameters as the task writes them."""
    sizes: tuple[int, ...]

    @property
    def text(self) -> str:
        """The signature in one line, for messages."""
        return f"{self.kernel}({', '.join(self.parameters)})"


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The formulas of one key, and their location for messages."""

    key: str
    where: str
    formulas: tuple[Formula, ...]

    def numbers(self, args: Mapping[str, ArgValue]) -> tuple[int, ...]:
        """The sizes for one case; LaunchError if CUDA does not allow one."""
        least = 0 if self.key == "shared" else 1
        sizes = []
        for formula, most in zip(self.formulas, _MOST[self.key], strict=False):
            try:
                size = as_integer(formula.number(args), formula.text)
            except FormulaError as error:
                raise LaunchError(self.key, f"{self.where}: {error}") from error
            if not least <= size <= most:
                message = f"{formula.text!r} is {size}, which must be from {least} to {most}"
                raise LaunchError(self.key, f"{self.where}: {message}")
            sizes.append(size)
        return tuple(sizes)


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """A task's parsed `launch`, with the overrides of a submission if any."""

    kernel: str
    parameter_texts: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    block: _Sizes
    grid: _Sizes
    shared: _Sizes

    @classmethod
    def of(cls, launch: Launch) -> Self:
        """Parse the `launch` of task.yml; LaunchError if it is invalid."""
        if len(launch.kernel) > MAX_NAME or not _KERNEL.fullmatch(launch.kernel):
            raise LaunchError("kernel", f"launch.kernel: {launch.kernel!r} is not a kernel's name")
        if len(launch.params) > MAX_PARAMETERS:
            raise LaunchError("params", f"launch.params: at most {MAX_PARAMETERS} are allowed")
        return cls(
            kernel=launch.kernel,
            parameter_texts=launch.params,
            parameters=tuple(map(_parameter, launch.params)),
            block=_sizes("block", "launch.block", [str(part) for part in launch.block]),
            grid=_sizes("grid", "launch.grid", [str(part) for part in launch.grid]),
            shared=_sizes("shared", "launch.shared", [str(launch.shared)]),
        )

    def overridden(self, source: str) -> Self:
        """The plan with the overrides of a submission's header; LaunchError names a wrong line."""
        overrides = {sizes.key: sizes for sizes in _overrides(source)}
        return replace(
            self,
            block=overrides.get("block", self.block),
            grid=overrides.get("grid", self.grid),
            shared=overrides.get("shared", self.shared),
        )

    def numbers(self, workload: Workload) -> LaunchNumbers:
        """The launch for one case; LaunchError names the formula that has no valid value."""
        args = formula_arguments(workload)
        try:
            block = self._block(args)
            known = args | dict(zip(_BLOCK_NAMES, block, strict=True))
            return LaunchNumbers(
                grid=_padded(self.grid.numbers(known)),
                block=block,
                shared=self.shared.numbers(known)[0],
                arguments=tuple(argument for argument, _ in self._arguments(args)),
            )
        except LaunchError as error:
            case = f" (for the case {workload.spec!r})"
            raise LaunchError(error.key, f"{error}{case}") from error

    def _block(self, args: Mapping[str, ArgValue]) -> tuple[int, int, int]:
        block = _padded(self.block.numbers(args))
        if block[0] * block[1] * block[2] > MAX_THREADS:
            threads = f"{self.block.where}: {' x '.join(map(str, block))} threads"
            raise LaunchError("block", f"{threads}; a block has at most {MAX_THREADS}")
        return block

    def _arguments(
        self, args: Mapping[str, ArgValue]
    ) -> Iterable[tuple[BufferArgument | LaunchScalar, str]]:
        """Every argument with its C type."""
        for parameter in self.parameters:
            if isinstance(parameter, BufferArgument):
                yield parameter, POINTER
                continue
            try:
                kind, data = parameter.pack(args)
            except FormulaError as error:
                raise LaunchError("params", f"launch.params: {error}") from error
            yield LaunchScalar(data=data.hex()), kind.value

    def signature(self, workloads: Iterable[Workload]) -> Signature:
        """The signature that the kernel must have; LaunchError if the cases disagree."""
        kinds: dict[tuple[str, ...], str] = {}
        for workload in workloads:
            types = tuple(kind for _, kind in self._arguments(formula_arguments(workload)))
            kinds.setdefault(types, workload.spec)
        if len(kinds) > 1:
            one, other = list(kinds)[:2]
            pairs = zip(self.parameter_texts, one, other, strict=True)
            text, kind, other_kind = next(each for each in pairs if each[1] != each[2])
            raise LaunchError(
                "params",
                f"launch.params: {text!r} has type {kind} in some cases and {other_kind} in "
                f"others; name its type, as in '{other_kind} {text}'",
            )
        sizes = (bytes_of(kind) for kind in next(iter(kinds), ()))
        return Signature(kernel=self.kernel, parameters=self.parameter_texts, sizes=tuple(sizes))


def formula_arguments(workload: Workload) -> dict[str, ArgValue]:
    """The arguments of a case that a launch's formulas may use: all except the secret seed.

    LaunchError if one has the name of a block size.
    """
    taken = next((name for name in _BLOCK_NAMES if name in workload.args), None)
    if taken is not None:
        message = f"{taken!r} is the block's own size; rename the case's argument"
        raise LaunchError("grid", f"launch: {message}")
    return {name: value for name, value in workload.args.items() if name != _SEED}


def parse_sizes(key: str, text: str) -> tuple[Formula, ...]:
    """Parse the comma-separated formulas after `block`, `grid` or `shared` in a header.

    FormulaError if there are too many or one is invalid.
    """
    return _parsed(key, _split(text))


def _parsed(key: str, parts: list[str]) -> tuple[Formula, ...]:
    most = len(_MOST[key])
    if not 1 <= len(parts) <= most:
        raise FormulaError("give one number of bytes" if most == 1 else "give one to three sizes")
    return tuple(parse_formula(part.strip()) for part in parts)


def _sizes(key: str, where: str, parts: list[str]) -> _Sizes:
    try:
        return _Sizes(key, where, _parsed(key, parts))
    except FormulaError as error:
        raise LaunchError(key, f"{where}: {error}") from error


def _overrides(source: str) -> Iterable[_Sizes]:
    seen: dict[str, int] = {}
    for number, words in header_lines(source, (MARKER,)):
        key = words[1].lower() if words[1:] else ""
        if key not in OVERRIDES:
            continue
        where = f"line {number} of the header: {key}"
        if key in seen:
            raise LaunchError(key, f"{where} was set in line {seen[key]} already")
        seen[key] = number
        yield _sizes(key, where, _split(" ".join(words[2:])))


def _split(text: str) -> list[str]:
    """Split the text at commas outside of parentheses, unless it is too long for three formulas."""
    if len(text) > _LONGEST_SIZES:
        return [text]
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _parameter(text: str) -> Parameter:
    try:
        return parse_parameter(text)
    except FormulaError as error:
        raise LaunchError("params", f"launch.params: {error}") from error


def _padded(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


Resource = Annotated[int, Field(ge=0, le=1 << 32)]


class Compiled(Wire):
    """What the compiler reported about device code; in bytes unless the name says otherwise."""

    registers: Annotated[int, Field(ge=0, le=1024)]
    """Per thread."""
    spill_stores: Resource
    """Register spills that one thread writes to memory."""
    spill_loads: Resource
    """Register spills that one thread reads back."""
    stack: Resource
    """Local memory of one thread."""
    shared: Resource
    """Static shared memory; a launch may add dynamic shared memory."""
    constant: Resource | None = None
    """Constant memory, including parameters; CUDA 13's compiler does not report it."""
