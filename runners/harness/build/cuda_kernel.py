"""A kernel of kind `cuda`, in the candidate: compiled by NVRTC, launched with all arguments.

This runs together with the submission, so nothing here protects the judge.

This module defines host headers that kernels often include and NVRTC does not have. What they
declare for a device is predefined in NVRTC, except the fixed-width integers (NVRTC documentation,
"Predefined Functions" and "Supported C++ Features"). The device part of the C++ library is from
CUDA (libcu++, "Standard API Reference").
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from runners.contract.io_contract import Argument, KernelCall, TensorArgument
from runners.contract.launch import Compiled, LaunchNumbers
from runners.contract.parameters import BufferArgument, LaunchScalar
from runners.contract.wire import Wire
from runners.harness.build import c_signature
from runners.harness.build.kernel_calls import Outputs, written_outputs
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
_MATH_FUNCTIONS = (
    "abs", "acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "cosh", "erf", "exp", "exp2",
    "expm1", "fabs", "floor", "fma", "fmax", "fmin", "fmod", "hypot", "isfinite", "isinf", "isnan",
    "log", "log10", "log1p", "log2", "pow", "round", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_STD_MATH = "namespace std {{\n{}}}\n".format(
    "".join(f"using ::{name};\n" for name in _MATH_FUNCTIONS)
)
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
_USE_CUDA_HEADER = """\
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
    **{name: _USE_CUDA_HEADER.format(name) for name in _CUDA_HEADERS},
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


def write_headers(folder: Path) -> Path:
    """Write the headers of this module into a subfolder of `folder`; return that subfolder."""
    headers = folder / "std_headers"
    headers.mkdir(exist_ok=True)
    for name, text in _HEADERS.items():
        (headers / name).write_text(text)
    return headers


FOLDER = f"{builds.FOLDER}/contract"
_CUBIN, _METADATA = "kernel.cubin", "kernel.json"
_POINTER_BYTES = 8
_HARNESS_OPTIONS = ("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-O", "-lineinfo")
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
    """Launches a kernel on the tensors of a call, always with the same launch numbers."""

    def __init__(self, code: DeviceCode, call: KernelCall, numbers: LaunchNumbers) -> None:
        self.code = code
        self.args: Sequence[Argument] = call.args or ()
        self.numbers = numbers

    def __call__(self, data: dict[str, Any]) -> Outputs:
        """Launch it and return the tensors that it writes."""
        values = data["args"]
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        self.code(ReadyLaunch(self.numbers, tensors, ()))
        return written_outputs(self.args, values)


def build(folder: Path, file_name: str, call: KernelCall) -> Built:
    """Return the kernel of a source; compile it unless an earlier candidate's cubin is there."""
    declaration = select_kernel((folder / file_name).read_text(encoding="utf-8"), call)
    cache = folder / FOLDER
    try:
        metadata = CachedContractKernel.model_validate_json((cache / _METADATA).read_bytes())
        cubin = (cache / _CUBIN).read_bytes()
    except (OSError, ValidationError):
        target = nvrtc.architecture(torch.cuda.get_device_capability())
        metadata, cubin = compile_kernel(folder, file_name, call, target)
        cache.mkdir(parents=True, exist_ok=True)
        (cache / _CUBIN).write_bytes(cubin)
        (cache / _METADATA).write_text(metadata.model_dump_json())
    numbers = launch_numbers(call, declaration, metadata.sizes)
    return Built(CudaKernel(DeviceCode(cubin, metadata.entry), call, numbers), metadata.compiled)


def compile_kernel(
    folder: Path, file_name: str, call: KernelCall, target: str
) -> tuple[CachedContractKernel, bytes]:
    """Compile for the architecture `target` in NVRTC's notation; prints the compiler's warnings.

    BuildFailedError or InvalidSubmissionError if that fails.
    """
    source = (folder / file_name).read_text(encoding="utf-8")
    toolchain = nvrtc.find()
    if toolchain is None:
        raise BuildFailedError("this machine cannot compile CUDA: it has no NVRTC", "")
    includes = (folder, write_headers(folder), *toolchain.includes)
    binary = nvrtc.compile_source(
        toolchain.library,
        source,
        file_name,
        kernel=name_expression(call, select_kernel(source, call)),
        options=nvrtc_options(call.options, target, includes),
    )
    if warnings := nvrtc.remarks(binary.log):
        print(warnings)  # noqa: T201 - the log
    sizes = nvrtc.parameter_sizes(binary.ptx, binary.entry)
    return CachedContractKernel(
        entry=binary.entry, sizes=sizes, compiled=nvrtc.resources(binary.log, binary.entry)
    ), binary.cubin


def nvrtc_options(requested: Sequence[str], target: str, includes: Sequence[Path]) -> list[str]:
    """NVRTC's options, with those of `requested` that NVRTC has."""
    supported = [
        option
        for option in requested
        if option and not option.startswith((*_HARNESS_OPTIONS, *_NVCC_ONLY))
    ]
    standard = any(option.lstrip("-").startswith("std=") for option in supported)
    return [
        f"--gpu-architecture={target}",
        "-lineinfo",
        "-default-device",
        *(() if standard else (_STANDARD,)),
        f"--pre-include={INTEGERS}",
        *(f"-I{folder}" for folder in includes),
        *supported,
    ]


def select_kernel(source: str, call: KernelCall) -> c_signature.KernelDeclaration:
    """The kernel that the call names, or the first one; InvalidSubmissionError if there is none."""
    if call.args is None:
        raise InvalidSubmissionError("a cuda kernel needs io with the arguments of its call")
    expression = _requested_name(call)
    kernels = c_signature.find_kernels(source)
    if expression is None:
        if not kernels:
            raise InvalidSubmissionError("there is no kernel: define a `__global__` function")
        return kernels[0]
    name = expression.partition("<")[0].rpartition("::")[2].strip()
    kernel = next(
        (kernel for kernel in kernels if kernel.name == name),
        c_signature.KernelDeclaration(name, ()),
    )
    return kernel.instance(expression)


def name_expression(call: KernelCall, declaration: c_signature.KernelDeclaration) -> str:
    """The kernel's name for NVRTC, with the arguments of a template's instance."""
    return _requested_name(call) or declaration.name


def _requested_name(call: KernelCall) -> str | None:
    name = call.kernel_name
    if name is None:
        return call.expressions[0] if call.expressions else None
    instances = (
        expression
        for expression in call.expressions
        if expression.partition("<")[0].strip() == name
    )
    return next(instances, name)


def launch_numbers(
    call: KernelCall, declaration: c_signature.KernelDeclaration, sizes: Sequence[int]
) -> LaunchNumbers:
    """The launch, with every number packed in the type of its parameter.

    The compiler gives the `sizes` of the parameters. If their number differs from the parsed
    declaration, macros have changed it, and only the sizes are used. InvalidSubmissionError if the
    arguments do not fit.
    """
    args = call.args or ()
    if len(args) != len(sizes):
        raise InvalidSubmissionError(
            f"`{declaration.name}` takes {len(sizes)} parameters, and io has {len(args)} arguments"
        )
    parameters: Sequence[c_signature.Parameter | None] = declaration.parameters
    if len(parameters) != len(sizes):
        parameters = [None] * len(sizes)
    arguments: list[PackedArgument] = []
    index = 0
    for argument, parameter, size in zip(args, parameters, sizes, strict=True):
        if isinstance(argument, TensorArgument):
            _require_pointer(argument, size, pointer=parameter is None or parameter.pointer)
            arguments.append(BufferArgument(kind="in", index=index))
            index += 1
            continue
        try:
            data = c_signature.pack_scalar(parameter, size, argument.value)
        except c_signature.ArgumentError as error:
            raise InvalidSubmissionError(f"argument `{argument.name}`: {error}") from error
        arguments.append(LaunchScalar(data=data.hex()))
    return LaunchNumbers(grid=call.grid, block=call.block, arguments=tuple(arguments))


def _require_pointer(argument: TensorArgument, size: int, *, pointer: bool) -> None:
    if size != _POINTER_BYTES or not pointer:
        raise InvalidSubmissionError(
            f"argument `{argument.name}` is a tensor, and its parameter is no pointer"
        )
