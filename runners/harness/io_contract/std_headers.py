"""Headers of a host compiler that kernels include out of habit, and that NVRTC has no files for.

What they declare for a device is built into NVRTC (its documentation, "Predefined Functions" and
"Supported C++ Features"), save the integers of a fixed width. What of C++'s own library a device
can use is CUDA's (libcu++, "Standard API Reference"), where its headers are.
"""

from pathlib import Path

INTEGERS = "cstdint"
"""Every kernel has this one: a host compiler's CUDA brings it along."""
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
_MATHS = """\
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
_STD_MATHS = "namespace std {{\n{}}}\n".format("".join(f"using ::{name};\n" for name in _FUNCTIONS))
_EXTREMES = """\
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
_OF_CUDA = (
    "array", "complex", "functional", "initializer_list", "limits", "tuple", "type_traits",
    "utility",
)  # fmt: skip
_HEADERS = {
    **{name: _FORWARD.format(name) for name in _OF_CUDA},
    "algorithm": _EXTREMES,
    "math.h": _MATHS,
    "cmath": _MATHS + "#include <algorithm>\n" + _STD_MATHS,
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
    """Write them beneath the candidate's own folder; gives theirs."""
    place = folder / "std_headers"
    place.mkdir(exist_ok=True)
    for name, text in _HEADERS.items():
        (place / name).write_text(text)
    return place
