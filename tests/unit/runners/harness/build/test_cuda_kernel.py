"""Kernels up to their launch, which needs a GPU; NVRTC compiles without one."""

import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from runners.contract.io_contract import Argument, ContractScalar, KernelCall, KernelKind
from runners.contract.io_contract import TensorArgument as Tensor
from runners.contract.launch import LaunchNumbers
from runners.contract.parameters import BufferArgument
from runners.contract.parameters import LaunchScalar as Bytes
from runners.harness.build import cuda_kernel
from runners.harness.build.cuda_kernel import (
    compile_kernel,
    name_expression,
    nvrtc_options,
    select_kernel,
)
from runners.harness.gpu.device_code import ReadyLaunch
from runners.harness.toolchains import nvrtc
from runners.languages import BuildFailedError, InvalidSubmissionError

SCALE = """
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>
#include <cuda_bf16.h>
__global__ void scale(const float* x, float* y, float factor, uint32_t n, bool deep) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i] * factor, deep);
}
"""
TEMPLATE = """
namespace ours {
template <typename T> __global__ void scale(const T* x, T* y, T factor) { *y = *x * factor; }
}
"""
X, Y = Tensor(name="x", dtype="float32", shape=(4,)), Tensor(name="y", dtype="float32", shape=(4,))
FACTOR, N = ContractScalar(name="factor", value=2.5), ContractScalar(name="n", value=4)
DEEP = ContractScalar(name="deep", value=True)
ALL = (X, Y, FACTOR, N, DEEP)
needs_nvrtc = pytest.mark.skipif(nvrtc.find() is None, reason="there is no NVRTC here")


def call(*args: Argument, **more: Any) -> KernelCall:  # noqa: ANN401 - any of its fields
    return KernelCall(kind=KernelKind.CUDA, args=args, **more)


def prepared(folder: Path, source: str, wanted: KernelCall) -> LaunchNumbers:
    (folder / "kernel.cu").write_text(source)
    listing, cubin = compile_kernel(folder, "kernel.cu", wanted, "sm_80")
    assert cubin
    return cuda_kernel.launch_numbers(wanted, select_kernel(source, wanted), listing.sizes)


@needs_nvrtc
def test_a_float_is_passed_as_a_float(tmp_path: Path) -> None:
    numbers = prepared(tmp_path, SCALE, call(*ALL, grid=(2, 1, 1), block=(32, 4, 1)))
    assert (numbers.grid, numbers.block, numbers.shared) == ((2, 1, 1), (32, 4, 1), 0)
    assert numbers.arguments == (
        BufferArgument(kind="in", index=0),
        BufferArgument(kind="in", index=1),
        Bytes(data=struct.pack("<f", 2.5).hex()),
        Bytes(data=struct.pack("<I", 4).hex()),
        Bytes(data="01"),
    )


@needs_nvrtc
@pytest.mark.parametrize(("kind", "layout"), [("float", "<f"), ("double", "<d")])
def test_a_template_is_instantiated_as_it_is_named(tmp_path: Path, kind: str, layout: str) -> None:
    wanted = call(X, Y, FACTOR, expressions=(f"ours::scale<{kind}>",))
    numbers = prepared(tmp_path, TEMPLATE, wanted)
    assert numbers.arguments[2] == Bytes(data=struct.pack(layout, 2.5).hex())


@needs_nvrtc
@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((X, Y, FACTOR), "takes 5 parameters, and io has 3"),
        ((X, Y, FACTOR, FACTOR, DEEP), "`factor`.*not a whole number"),
        ((X, Y, X, N, DEEP), "`x` is a tensor, and its parameter is no pointer"),
        ((X, FACTOR, FACTOR, N, DEEP), "`factor`.*is a pointer"),
        ((X, Y, ContractScalar(name="s", value="up"), N, DEEP), "`s`.*a str"),
    ],
)
def test_arguments_that_are_not_the_kernels_are_refused(
    tmp_path: Path, args: tuple[Argument, ...], words: str
) -> None:
    with pytest.raises(InvalidSubmissionError, match=words):
        prepared(tmp_path, SCALE, call(*args))


@needs_nvrtc
def test_a_compilers_complaint_is_handed_on(tmp_path: Path) -> None:
    with pytest.raises(BuildFailedError, match="undefined_name"):
        prepared(tmp_path, SCALE.replace("* factor", "* undefined_name"), call(*ALL))
    with pytest.raises(InvalidSubmissionError, match="no kernel `other`"):
        prepared(tmp_path, SCALE, call(*ALL, kernel_name="other"))


@needs_nvrtc
@pytest.mark.parametrize(
    "source",
    [
        'extern "C" { __global__ void f(float* x, int n) { x[n] = 1; } }',
        "#include <cmath>\n__global__ void f(float* x, int n) { *x = INFINITY + NAN + M_PI; }",
        "#define KERNEL __global__ void\nKERNEL f(float* x, int n) { x[n] = 1; }",
        (
            "#include <cuda/std/cstdint>\n#include <cstdint>\n#include <cfloat>\n"
            "#include <climits>\n"
            "__global__ void f(float* x, int32_t n) { x[n] = FLT_MAX + INT_MAX; }"
        ),
        "__global__ void f(float* x, uint32_t n) { std::size_t i = n; x[i] = 1; }",
        "#include <cmath>\n__global__ void f(float* x, int) { *x = std::max(1.f, std::abs(*x)); }",
        "#include <algorithm>\n__global__ void f(float* x, int n) { x[std::min(1, n)] = 1; }",
    ],
    ids=["in a block", "constants", "a macro", "integers", "unasked", "functions", "extremes"],
)
def test_kernels_compile_however_they_are_written(tmp_path: Path, source: str) -> None:
    numbers = prepared(tmp_path, source, call(X, N, kernel_name="f"))
    assert numbers.arguments[1] == Bytes(data="04000000")


@needs_nvrtc
def test_of_cpps_own_library_there_is_what_cuda_has_of_it(tmp_path: Path) -> None:
    found = nvrtc.find()
    assert found is not None
    if not any((folder / "cuda/std/limits").is_file() for folder in found.includes):
        pytest.skip("libcu++ is not here")
    source = (
        "#include <limits>\n"
        "__global__ void f(float* x, int n) { x[n] = std::numeric_limits<float>::max(); }"
    )
    assert prepared(tmp_path, source, call(X, N)).arguments[1] == Bytes(data="04000000")


def test_a_kernel_is_named_or_the_first_one() -> None:
    source = SCALE + TEMPLATE
    assert select_kernel(source, call()).name == "scale"
    two = "__global__ void a(int n) {}\n__global__ void b() {}"
    assert select_kernel(two, call(kernel_name="b")).name == "b"
    named = call(kernel_name="b", expressions=("a<1>", "b<2>"))
    assert name_expression(named, select_kernel(two, named)) == "b<2>"
    with pytest.raises(InvalidSubmissionError, match="needs io"):
        select_kernel(two, KernelCall(kind=KernelKind.CUDA))
    with pytest.raises(InvalidSubmissionError, match="__global__"):
        select_kernel("int main() {}", call())


def test_options_of_another_compiler_are_left_out() -> None:
    own = (
        "-O3", "--use_fast_math", "-arch=sm_70", "-DN=4", "--std=c++20", "-gencode=arch=x", "",
        "--expt-relaxed-constexpr", "-Xptxas -v", "-lcublas", "-ccbin=g++", "--threads=4",
    )  # fmt: skip
    line = nvrtc_options(own, "sm_90a", (Path("/a"),))
    assert line[:3] == ["--gpu-architecture=sm_90a", "-lineinfo", "-default-device"]
    assert line[4:] == ["-I/a", "--use_fast_math", "-DN=4", "--std=c++20"]
    assert "--std=c++17" in nvrtc_options((), "sm_90a", ())


@needs_nvrtc
def test_what_was_compiled_is_found_again_and_launched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[ReadyLaunch] = []
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))
    monkeypatch.setattr(cuda_kernel, "DeviceCode", lambda *_: launched.append)
    (tmp_path / "kernel.cu").write_text(SCALE)
    wanted = call(X, Y.model_copy(update={"role": "output"}), FACTOR, N, DEEP)
    first = cuda_kernel.build(tmp_path, "kernel.cu", wanted)
    assert first.compiled is not None
    monkeypatch.setattr(cuda_kernel, "compile_kernel", None)
    kernel = cuda_kernel.build(tmp_path, "kernel.cu", wanted).kernel
    x, y = torch.ones(4), torch.zeros(4)
    kernel({"args": [x, y, 2.5, 4, True]})
    assert bytes(launched[0].values[0]) == x.data_ptr().to_bytes(8, "little")
    assert bytes(launched[0].values[2]) == struct.pack("<f", 2.5)
