"""Kernels of every kind of the evaluation server's, right and wrong ones, for a GPU."""

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.web.compat.evaluation_server.requests import KernelCode, Request
from tests.doubles.ioing import compare, evaluate, io, kernel, scalar, tensor

N = 1 << 20
SCALE = "import torch\ndef f(x, factor, n):\n    return x * factor\n"
SCALE_CU = """
__global__ void scale(const float* x, float* y, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * factor;
}
"""
TEMPLATE_CU = """
#include <cuda_bf16.h>
template <typename T>
__global__ void scale(const T* x, T* y, float factor, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = (T)((float)x[i] * factor);
}
"""
SCALE_TRITON = """
import triton
import triton.language as tl

@triton.jit
def scale(BLOCK: tl.constexpr, x, y, factor, n):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)
"""
HABITS_CU = """
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
""" + SCALE_CU.replace(
    "x[i] * factor", "std::max(x[i] * factor, std::numeric_limits<float>::lowest())"
)
TUNED_TRITON = """
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 1024}, num_warps=n) for n in (4, 8)], key=["n"])
@triton.jit
def scale(x, y, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)
"""
THREADS_TRITON = """
import triton
import triton.language as tl

@triton.jit
def threads(y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    seen = tl.inline_asm_elementwise(
        "mov.u32 $0, %ntid.x;", "=r,r", [at], dtype=tl.int32, is_pure=True, pack=1
    )
    tl.store(y + at, seen)
"""
SEVERAL = """
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n)
    tl.store(out + at, total, mask=at < n)

def go(x, y, out):
    add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    out.mul_(2)
"""
INLINE = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <torch/extension.h>
__global__ void twice(const float* x, float* y, int n) {
    extern __shared__ float tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { tile[threadIdx.x] = x[i]; y[i] = 2 * tile[threadIdx.x]; }
}
__global__ void once_more(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += 1;
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    twice<<<(n + 255) / 256, 256, 1024>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    once_more<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), n);
    return y;
}
"""
built = load_inline(
    name="run", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=CUDA,
    functions=["run"],
)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return built.run(x)
'''
MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x + 1

def get_inputs():
    return [torch.randn(1024, 1024){where}]

def get_init_inputs():
    return []
"""
MADE_OF_TENSORS = """
import torch

class Model(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x):
        return x * self.weight

def get_inputs():
    return [torch.randn(1024, 1024)]

def get_init_inputs():
    return [torch.arange(1024.0)]
"""
ENDLESS = "import torch\ndef f(x, factor, n):\n    while True:\n        x = x + 1\n"
PAUSING = "import torch\ndef f(x, factor, n):\n    return x * factor if x.max().item() > 0 else x\n"
CACHED = """
kept = []

def go(x, y, factor, n):
    if not kept:
        kept.append(x * factor)
    y.copy_(kept[0])
"""
ENDLESS_CU = """
__global__ void scale(const float* x, float* y, float factor, int n) {
    volatile float* seen = y;
    while (factor != 0.f) seen[0] = x[0];
}
"""
LITERALS = struct.pack("<4f", 1.5, -2, 1e30, 0)


@dataclass(frozen=True, slots=True)
class Row:
    """One request, and the category of failure that its answer must have, or none."""

    name: str
    request: Request
    category: str | None = None
    words: str = ""


def _args(*first: dict[str, Any], dtype: str = "float32", n: int = N) -> list[dict[str, Any]]:
    return [
        *first,
        tensor("x", shape=[n], dtype=dtype),
        tensor("y", role="output", shape=[n], dtype=dtype),
        scalar("factor", 2.5),
        scalar("n", n),
    ]


def _torch(source: str = SCALE, dtype: str = "float32") -> KernelCode:
    return kernel(source, "torch", io(*_args(dtype=dtype)), function_name="f")


def _cuda(
    source: str = SCALE_CU,
    blocks: int = N // 256,
    dtype: str = "float32",
    **named: Any,  # noqa: ANN401 - any key of the metadata
) -> KernelCode:
    made = io(*_args(dtype=dtype), grid={"x": blocks}, block={"x": 256})
    return kernel(source, "cuda", made, **named)


def _triton(source: str = SCALE_TRITON, **launch: int) -> KernelCode:
    block = scalar("BLOCK", 1024, is_meta=True)
    return kernel(source, "triton", io(*_args(block), grid={"x": N // 1024}, **launch))


def _threads(warps: int) -> Request:
    y = tensor("y", role="output", shape=[256], dtype="int32")
    made = io(y, scalar("BLOCK", 256, is_meta=True), grid={"x": 1}, num_warps=warps)
    wanted = (
        "import torch\ndef f():\n"
        f"    return torch.full((256,), {32 * warps}, dtype=torch.int32, device='cuda')\n"
    )
    return compare(
        kernel(THREADS_TRITON, "triton", made), kernel(wanted, "torch", io(), function_name="f")
    )


def _model(where: str = "") -> KernelCode:
    return kernel(MODEL.replace("{where}", where))


def _literal() -> Request:
    data = {"data_b64": base64.b64encode(LITERALS).decode(), "dtype": "float32", "shape": [4]}
    made = io(
        tensor("x", data=data), tensor("y", role="output", shape=[4]), scalar("factor", 2.5),
        scalar("n", 4),
    )  # fmt: skip
    source = (
        "import torch\ndef f(x, factor, n):\n    want = torch.tensor([1.5, -2, 1e30, 0]).cuda()\n"
        "    assert torch.equal(x, want)\n    return x * factor\n"
    )
    return compare(kernel(SCALE_CU, "cuda", made), kernel(source, "torch", made, function_name="f"))


def right() -> Iterator[Row]:
    """Kernels that must be correct, with a time and a speed-up."""
    x, y = tensor("x", shape=[N]), tensor("y", shape=[N])
    several = io(x, y, tensor("out", role="output", shape=[N]))
    add = "def f(x, y):\n    return (x + y) * 2\n"
    total = kernel(add, "torch", io(x, y), function_name="f")
    steps = kernel(SEVERAL, "multi_kernel", several, entry_point="go")
    b16 = _cuda(TEMPLATE_CU, 1024, "bfloat16", name_expressions=["scale<__nv_bfloat16>"])
    yield Row("torch alone", evaluate(_torch(), 100))
    yield Row("cuda alone", evaluate(_cuda(), 100))
    yield Row("a model alone", evaluate(_model(), 30))
    yield Row("a model made of tensors", evaluate(kernel(MADE_OF_TENSORS), 30))
    yield Row("cuda, headers of habit", compare(_cuda(HABITS_CU), _torch(), 30))
    tuned = kernel(TUNED_TRITON, "triton", io(*_args(), grid={"x": N // 1024}))
    yield Row("triton, tuned", compare(tuned, _torch(), 30, 60))
    yield Row("cuda, a float", compare(_cuda(), _torch(), 100))
    yield Row("cuda, bfloat16 template", compare(b16, _torch(dtype="bfloat16"), 100))
    yield Row("cuda beside cuda", compare(_cuda(), _cuda(), 100))
    yield Row("triton, meta first", compare(_triton(num_warps=8, num_stages=2), _torch(), 100))
    yield Row("triton beside cuda", compare(_triton(), _cuda(), 100))
    for warps in (2, 8):
        yield Row(f"triton, {warps} warps", _threads(warps))
    yield Row("several kernels", compare(steps, total, 100))
    yield Row("inputs on the CPU", compare(kernel(INLINE, "torch_cuda"), _model(), 100, 120))
    on_gpu = _model(".cuda()")
    yield Row("inputs on the GPU", compare(kernel(INLINE, "torch_cuda"), on_gpu, 30, 120))
    yield Row("a reference that waits", compare(_cuda(), _torch(PAUSING), 30))
    yield Row("literal values", _literal())
    counted = compare(_cuda(), _torch(), 30, 120).model_copy(update={"device_metrics": True})
    yield Row("counted by ncu", counted)


def wrong() -> Iterator[Row]:
    """Kernels that must be refused, and for what."""
    cached = kernel(CACHED, "multi_kernel", io(*_args()), entry_point="go")
    tail = _cuda(blocks=N // 256 - 1)
    yield Row("another factor", compare(_cuda(SCALE_CU.replace("factor;", "99;")), _torch()),
              "wrong_answer", "elements differ")  # fmt: skip
    yield Row("the first answer", compare(cached, _torch()), "wrong_answer", "elements differ")
    yield Row("a tail unwritten", compare(tail, _torch()), "wrong_answer", "256 of")
    yield Row(
        "no such name", evaluate(_cuda(SCALE_CU.replace("x[i]", "z[i]"))), "build_failed", "z"
    )
    yield Row("no arguments", evaluate(kernel(SCALE_CU, "cuda")), "invalid_submission", "needs io")
    yield Row("too few arguments", evaluate(kernel(SCALE_CU, "cuda", io(tensor("x")))),
              "invalid_submission", "takes 4 parameters")  # fmt: skip
    yield Row("writes far away", evaluate(_cuda(SCALE_CU.replace("y[i]", "y[i + (1ll << 40)]"))),
              "crashed", "CUDA")  # fmt: skip
    yield Row("never ends", evaluate(_cuda(ENDLESS_CU), timeout=10), "timed_out", "time")
    yield Row("a reference that raises", compare(_cuda(), _torch("def f(x, factor, n):\n    z\n")),
              "reference_error", "'z'")  # fmt: skip
    yield Row("a reference without end", compare(_cuda(), _torch(ENDLESS), timeout=15),
              "reference_error", "timed out")  # fmt: skip
