"""Compiles with NVRTC, and reads a kernel's resources and parameters from the compiler's output.

The library and the headers come with torch's CUDA wheels or with a CUDA toolkit.

Sources: the NVRTC documentation, the log of `ptxas --verbose`, and the PTX ISA's chapter "Kernel
Function Parameters".
"""

import ctypes
import importlib.util
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from runners.contract.launch import Compiled
from runners.harness.toolchains import TOOLKIT
from runners.languages import BuildFailedError, InvalidSubmissionError

MAX_LOG = 16_000
"""The most characters of a compiler's log; less than the limit on a candidate's output."""
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_INFO = re.compile(r"^ptxas (?:info  |      ).*$\n?", re.MULTILINE)
_TYPE = re.compile(r"\.[usbf](8|16|32|64)\b")
_COUNT = re.compile(r"\[(\d+)\]")


def resources(log: str, entry: str) -> Compiled | None:
    """Return the resources of the kernel with this lowered name; None if the log has none."""
    parts = _ENTRY.split(log)
    texts = dict(zip(parts[1::2], parts[2::2], strict=True))
    text = texts.get(entry)
    if text is None:
        return None
    return Compiled(
        registers=_sum(r"Used (\d+) registers", text),
        spill_stores=_sum(r"(\d+) bytes spill stores", text),
        spill_loads=_sum(r"(\d+) bytes spill loads", text),
        stack=_sum(r"(\d+) bytes stack frame", text),
        shared=_sum(r"(\d+) bytes smem", text),
        constant=_sum(r"(\d+) bytes cmem", text) if "cmem" in text else None,
    )


def _sum(pattern: str, text: str) -> int:
    return sum(map(int, re.findall(pattern, text)))


def remarks(log: str) -> str:
    """Return the warnings in a log: all except the lines of ptxas about resources."""
    return shortened(_INFO.sub("", log).strip())


def shortened(text: str) -> str:
    """Return the beginning of a compiler's log, because template errors can be very long."""
    return text if len(text) <= MAX_LOG else f"{text[:MAX_LOG]}\n... and more"


def parameter_sizes(ptx: str, entry: str) -> tuple[int, ...]:
    """Return the size in bytes of each parameter of a kernel, in order."""
    match = re.search(rf"\.entry\s+{re.escape(entry)}\s*\(([^)]*)\)", ptx)
    parameters = match[1].split(",") if match else []
    return tuple(_size(parameter) for parameter in parameters if parameter.strip())


def _size(parameter: str) -> int:
    kind, count = _TYPE.search(parameter), _COUNT.search(parameter)
    return int(kind[1]) // 8 * int(count[1] if count else 1) if kind else 0


_LIBRARIES = "libnvrtc.so.[0-9]*"
_BUILTINS = "libnvrtc-builtins.so.[0-9]*"
_HEADER = "cuda_fp16.h"
_REPORT_RESOURCES = "--ptxas-options=-v"
"""Makes ptxas report each kernel's registers and memory, and suppresses the errors of ptxas."""
_NAME_MAP = "__nv_name_map("
"""The beginning of NVRTC's errors about the kernel's name; other errors are about the source."""
_SUMMARY = re.compile(r"^\d+ (?:catastrophic )?errors? detected in .*$\n?", re.MULTILINE)
_FAILURE = re.compile(r"(?:^|[\s:])(?:catastrophic )?error\b")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """An NVRTC library and the folders of CUDA's headers."""

    library: Path
    includes: tuple[Path, ...]

    @property
    def version(self) -> str:
        """The version in the library's file name."""
        return self.library.name.split(".so.")[1]


@dataclass(frozen=True, slots=True)
class Code:
    """Compiled device code: the kernel's lowered name, cubin, PTX and log."""

    entry: str
    cubin: bytes
    ptx: str
    log: str


def find() -> Toolchain | None:
    """Return the first library that exists; its own headers come before those of other places."""
    roots = [root for root in _roots() if root.is_dir()]
    libraries = (
        (root, library)
        for root in roots
        for folder in ("lib", "lib64")
        for library in sorted((root / folder).glob(_LIBRARIES))
    )
    home, library = next(libraries, (None, None))
    if home is None or library is None:
        return None
    own_first = (home, *(root for root in roots if root != home))
    includes = [root / "include" for root in own_first if (root / "include" / _HEADER).is_file()]
    nested = [folder / "cccl" for folder in includes if (folder / "cccl").is_dir()]
    return Toolchain(library, (*includes, *nested))


def _roots() -> Iterator[Path]:
    wheels = importlib.util.find_spec("nvidia")
    for folder in (wheels and wheels.submodule_search_locations) or ():
        yield from sorted(Path(folder).iterdir())
    if compiler := shutil.which("nvcc"):
        yield Path(compiler).resolve().parents[1]
    yield TOOLKIT


def architecture(capability: tuple[int, int]) -> str:
    """Return NVRTC's name of an architecture; from 9.0 on with its specific features: `sm_90a`."""
    major, minor = capability
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


class _Program:
    """One NVRTC program; every call is checked."""

    def __init__(self, nvrtc: ctypes.CDLL, source: str, name: str) -> None:
        self.nvrtc = nvrtc
        self.handle = ctypes.c_void_p()
        self.check(
            nvrtc.nvrtcCreateProgram(
                ctypes.byref(self.handle), source.encode(), name.encode(), 0, None, None
            )
        )

    def check(self, status: int) -> None:
        """Raise OSError if a call failed."""
        if status != 0:
            self.nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise OSError(f"NVRTC failed: {self.nvrtc.nvrtcGetErrorString(status).decode()}")

    def compile(self, kernel: str, options: Sequence[str]) -> bool:
        """Compile; return whether the source compiles and has a kernel with this name."""
        self.check(self.nvrtc.nvrtcAddNameExpression(self.handle, kernel.encode()))
        return self.compile_unnamed(options)

    def compile_unnamed(self, options: Sequence[str]) -> bool:
        """Compile; return whether the source compiles."""
        words = [option.encode() for option in options]
        array = (ctypes.c_char_p * len(words))(*words)
        return bool(self.nvrtc.nvrtcCompileProgram(self.handle, len(words), array) == 0)

    def bytes_of(self, what: str) -> bytes:
        """Return the `ProgramLog`, `PTX` or `CUBIN`."""
        size = ctypes.c_size_t()
        self.check(getattr(self.nvrtc, f"nvrtcGet{what}Size")(self.handle, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.nvrtc, f"nvrtcGet{what}")(self.handle, buffer))
        return buffer.raw

    def text_of(self, what: str) -> str:
        """Return the `ProgramLog` or `PTX` as text, without the trailing NUL."""
        return self.bytes_of(what).split(b"\0", 1)[0].decode(errors="replace")

    def entry(self, kernel: str) -> str:
        """The kernel's lowered name in the cubin."""
        lowered = ctypes.c_char_p()
        self.check(
            self.nvrtc.nvrtcGetLoweredName(self.handle, kernel.encode(), ctypes.byref(lowered))
        )
        return (lowered.value or b"").decode()

    def close(self) -> None:
        """Free the program."""
        self.nvrtc.nvrtcDestroyProgram(ctypes.byref(self.handle))


def compile_source(
    library: Path, source: str, name: str, *, kernel: str, options: Sequence[str]
) -> Code:
    """Compile a file called `name`, which must define `kernel`; the log lists its resources.

    BuildFailedError with the first error, its line and caret; InvalidSubmissionError if the source
    compiles but does not define the kernel.
    """
    with closing(_Program(_load(library), source, name)) as program:
        compiled = program.compile(kernel, (*options, _REPORT_RESOURCES))
        log = program.text_of("ProgramLog")
        if not compiled:
            _refuse(log if _has_error(log) else _plain_log(library, source, name, options), kernel)
        return Code(
            entry=program.entry(kernel),
            cubin=program.bytes_of("CUBIN"),
            ptx=program.text_of("PTX"),
            log=log,
        )


def _plain_log(library: Path, source: str, name: str, options: Sequence[str]) -> str:
    """The log of a compilation without resource reports, which would suppress errors of ptxas."""
    with closing(_Program(_load(library), source, name)) as program:
        program.compile_unnamed(options)
        return program.text_of("ProgramLog")


def _load(library: Path) -> ctypes.CDLL:
    """Load the library after its builtins library, which some releases find only by name."""
    for builtins in sorted(library.parent.glob(_BUILTINS)):
        ctypes.CDLL(str(builtins))
    return ctypes.CDLL(str(library))


def _has_error(log: str) -> bool:
    return _FAILURE.search(log) is not None


def _refuse(log: str, kernel: str) -> NoReturn:
    """Raise BuildFailedError if the source has errors, InvalidSubmissionError if it has none.

    In the second case the kernel is missing.
    """
    parts = [part for part in _SUMMARY.sub("", log).split("\n\n") if part.strip()]
    source_parts = [part for part in parts if not part.lstrip().startswith(_NAME_MAP)]
    failures = [part for part in source_parts if _has_error(part)]
    if failures or len(source_parts) == len(parts):
        text = "\n\n".join(part.rstrip() for part in source_parts)
        reason = failures[0].strip() if failures else "NVRTC gave no reason"
        raise BuildFailedError(reason, shortened(text))
    raise InvalidSubmissionError(
        f"there is no kernel `{kernel}`; define `__global__ void {kernel}(...)`"
    )
