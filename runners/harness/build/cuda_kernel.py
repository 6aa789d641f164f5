"""A kernel of kind `cuda`, in the candidate: compiled by NVRTC, launched with all arguments.

This runs together with the submission, so nothing here protects the judge.

The headers defined here are host headers that kernels often include and NVRTC does not have. What
they declare for a device is built into NVRTC (its documentation, "Predefined Functions" and
"Supported C++ Features"), except the fixed-width integers. The device part of the C++ library is
CUDA's own (libcu++, "Standard API Reference").
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from runners.contract.evaluation import Compiled
from runners.contract.io_contract import Argument, KernelCall, TensorArgument
from runners.contract.launch import LaunchNumbers
from runners.contract.parameters import BufferArgument, LaunchScalar
from runners.contract.wire import Wire
from runners.harness.build.c_signature import ArgumentError, Declared, Parameter, kernels_in, packed
from runners.harness.build.kernel_calls import Outputs, written
from runners.harness.gpu.device_code import DeviceCode, ReadyLaunch
from runners.harness.protocol import builds
from runners.harness.toolchains import nvrtc
from runners.languages import BuildFailedError, Built, InvalidSubmissionError

INTEGERS = "cstdint"
"""The header that every kernel includes implicitly, because `nvcc` includes it too."""
_INTEGERS = """\
#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
namespace std {
using ::size_t;
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
}
"""
_LIMITS = """\
#pragma once
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
"""
_FLOATS = """\
#pragma once
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
"""
_MATH = """\
#pragma once
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif
"""
_FUNCTIONS = (
    "abs", "acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "cosh", "erf", "exp", "exp2",
    "expm1", "fabs", "floor", "fma", "fmax", "fmin", "fmod", "hypot", "isfinite", "isinf", "isnan",
    "log", "log10", "log1p", "log2", "pow", "round", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_STD_MATH = "namespace std {{\n{}}}\n".format("".join(f"using ::{name};\n" for name in _FUNCTIONS))
_MIN_MAX = """\
#pragma once
namespace std {
template <class T> __device__ constexpr const T& min(const T& a, const T& b) {
    return b < a ? b : a;
}
template <class T> __device__ constexpr const T& max(const T& a, const T& b) {
    return a < b ? b : a;
}
}
"""
_FORWARD = """\
#pragma once
#if __has_include(<cuda/std/{0}>)
#include <cuda/std/{0}>
namespace std {{ using namespace cuda::std; }}
#endif
"""
_CUDA_HEADERS = (
    "array", "complex", "functional", "initializer_list", "limits", "tuple", "type_traits",
    "utility",
)  # fmt: skip
_HEADERS = {
    **{name: _FORWARD.format(name) for name in _CUDA_HEADERS},
    "algorithm": _MIN_MAX,
    "math.h": _MATH,
    "cmath": _MATH + "#include <algorithm>\n" + _STD_MATH,
    **dict.fromkeys(("stdint.h", INTEGERS, "stddef.h", "cstddef"), _INTEGERS),
    **dict.fromkeys(("limits.h", "climits"), _LIMITS),
    **dict.fromkeys(("float.h", "cfloat"), _FLOATS),
    **dict.fromkeys(
        ("stdio.h", "cstdio", "assert.h", "cassert", "stdlib.h", "cstdlib",
         "string.h", "cstring", "iostream"),
        "#pragma once\n",
    ),
}  # fmt: skip


def lay_out(folder: Path) -> Path:
    """Write these headers into a subfolder of the candidate's folder; return that subfolder."""
    place = folder / "std_headers"
    place.mkdir(exist_ok=True)
    for name, text in _HEADERS.items():
        (place / name).write_text(text)
    return place


FOLDER = f"{builds.FOLDER}/contract"
_CUBIN, _LISTING = "kernel.cubin", "kernel.json"
_POINTER = 8
_SET_HERE = ("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-O", "-lineinfo")
"""Prefixes of options for the target and the optimization, which the harness sets itself."""
_NVCC_ONLY = (
    "-X", "--compiler-options", "--compiler-bindir", "-ccbin", "-expt-", "--expt-",
    "-extended-lambda", "--extended-lambda", "-l", "-L", "-m64", "-g", "-shared", "-cubin", "-ptx",
    "-code", "--gpu-code", "-default-stream", "--default-stream", "-t=", "--threads", "-keep",
    "--keep", "-v", "--verbose",
)  # fmt: skip
"""Prefixes of options that NVRTC does not have; sources with `backend: nvcc` use them."""
_STANDARD = "--std=c++17"

PackedArgument = BufferArgument | LaunchScalar


class CachedContractKernel(Wire):
    """Stored with the cubin: the kernel's lowered name and the sizes of its parameters."""

    entry: str
    sizes: tuple[int, ...]
    compiled: Compiled | None = None


class CudaKernel:
    """Launches a kernel on the tensors of a call; the launch is computed once for all calls."""

    def __init__(self, code: DeviceCode, call: KernelCall, numbers: LaunchNumbers) -> None:
        self.code = code
        self.args: Sequence[Argument] = call.args or ()
        self.numbers = numbers

    def __call__(self, data: dict[str, Any]) -> Outputs:
        """Launch it and return the tensors that it writes."""
        values = data["args"]
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        self.code(ReadyLaunch(self.numbers, tensors, ()))
        return written(self.args, values)


def build(folder: Path, file_name: str, call: KernelCall) -> Built:
    """Return the kernel of a source; compile it unless an earlier candidate has done that."""
    declared = chosen((folder / file_name).read_text(encoding="utf-8"), call)
    cached = folder / FOLDER
    try:
        listing = CachedContractKernel.model_validate_json((cached / _LISTING).read_bytes())
        cubin = (cached / _CUBIN).read_bytes()
    except (OSError, ValidationError):
        target = nvrtc.architecture(torch.cuda.get_device_capability())
        listing, cubin = compiled(folder, file_name, call, target)
        cached.mkdir(parents=True, exist_ok=True)
        (cached / _CUBIN).write_bytes(cubin)
        (cached / _LISTING).write_text(listing.model_dump_json())
    numbers = launch_of(call, declared, listing.sizes)
    return Built(CudaKernel(DeviceCode(cubin, listing.entry), call, numbers), listing.compiled)


def compiled(
    folder: Path, file_name: str, call: KernelCall, target: str
) -> tuple[CachedContractKernel, bytes]:
    """Compile for the architecture `target` in NVRTC's notation; prints the compiler's warnings.

    BuildFailedError or InvalidSubmissionError if that fails.
    """
    source = (folder / file_name).read_text(encoding="utf-8")
    found = nvrtc.find()
    if found is None:
        raise BuildFailedError("this machine cannot compile CUDA: it has no NVRTC", "")
    includes = (folder, lay_out(folder), *found.includes)
    code = nvrtc.compile_source(
        found.library,
        source,
        file_name,
        kernel=expression_of(call, chosen(source, call)),
        options=options(call.options, target, includes),
    )
    if said := nvrtc.remarks(code.log):
        print(said)  # noqa: T201 - the log
    sizes = nvrtc.parameter_sizes(code.ptx, code.entry)
    return CachedContractKernel(
        entry=code.entry, sizes=sizes, compiled=nvrtc.resources(code.log, code.entry)
    ), code.cubin


def options(own: Sequence[str], target: str, includes: Sequence[Path]) -> list[str]:
    """NVRTC's options, with those of `own` that NVRTC has."""
    kept = [option for option in own if option and not option.startswith((*_SET_HERE, *_NVCC_ONLY))]
    standard = any(option.lstrip("-").startswith("std=") for option in kept)
    return [
        f"--gpu-architecture={target}",
        "-lineinfo",
        "-default-device",
        *(() if standard else (_STANDARD,)),
        f"--pre-include={INTEGERS}",
        *(f"-I{folder}" for folder in includes),
        *kept,
    ]


def chosen(source: str, call: KernelCall) -> Declared:
    """The named kernel, or the first one; InvalidSubmissionError if there is none."""
    if call.args is None:
        raise InvalidSubmissionError("a cuda kernel needs io with the arguments of its call")
    wanted = _wanted(call)
    found = kernels_in(source)
    if wanted is None:
        if not found:
            raise InvalidSubmissionError("there is no kernel: define a `__global__` function")
        return found[0]
    named = wanted.partition("<")[0].rpartition("::")[2].strip()
    kernel = next((each for each in found if each.name == named), Declared(named, ()))
    return kernel.instance(wanted)


def expression_of(call: KernelCall, declared: Declared) -> str:
    """The name expression for NVRTC, with the arguments of a template's instance."""
    return _wanted(call) or declared.name


def _wanted(call: KernelCall) -> str | None:
    name = call.kernel_name
    if name is None:
        return call.expressions[0] if call.expressions else None
    instances = (each for each in call.expressions if each.partition("<")[0].strip() == name)
    return next(instances, name)


def launch_of(call: KernelCall, declared: Declared, sizes: Sequence[int]) -> LaunchNumbers:
    """The launch, with every number packed in the type of its parameter.

    `sizes` are from the compiler. They override the parameters that were parsed from the source,
    which may be wrong because of macros. InvalidSubmissionError if the arguments do not fit.
    """
    args = call.args or ()
    if len(args) != len(sizes):
        raise InvalidSubmissionError(
            f"`{declared.name}` takes {len(sizes)} parameters, and io has {len(args)} arguments"
        )
    known = len(declared.parameters) == len(sizes)
    parameters: Sequence[Parameter | None] = declared.parameters if known else [None] * len(sizes)
    arguments: list[PackedArgument] = []
    tensors = 0
    for argument, parameter, size in zip(args, parameters, sizes, strict=True):
        if isinstance(argument, TensorArgument):
            _require_pointer(argument, size, pointer=parameter is None or parameter.pointer)
            arguments.append(BufferArgument(kind="in", index=tensors))
            tensors += 1
            continue
        try:
            data = packed(parameter, size, argument.value)
        except ArgumentError as error:
            raise InvalidSubmissionError(f"argument `{argument.name}`: {error}") from error
        arguments.append(LaunchScalar(data=data.hex()))
    return LaunchNumbers(grid=call.grid, block=call.block, arguments=tuple(arguments))


def _require_pointer(argument: TensorArgument, size: int, *, pointer: bool) -> None:
    if size != _POINTER or not pointer:
        raise InvalidSubmissionError(
            f"argument `{argument.name}` is a tensor, and its parameter is no pointer"
        )
