#!PODIUM leaderboard matmul
#!PODIUM needs cuda
# The functions take addresses instead of tensors. Without torch's headers the build takes seconds.
import torch
from task import input_t, output_t
from torch.utils.cpp_extension import load_inline

DECLARATION = """
#include <cstdint>
void matmul(std::uintptr_t a, std::uintptr_t b, std::uintptr_t c,
            int m, int n, int k, std::uintptr_t stream);
"""
CUDA = r"""
#include <cuda_fp16.h>
#include <stdexcept>

constexpr int kTile = 16;

__global__ void matmul_kernel(const __half* a, const __half* b, __half* c,
                              int m, int n, int k) {
    __shared__ float left[kTile][kTile];
    __shared__ float right[kTile][kTile + 1];
    const int64_t row = blockIdx.y * static_cast<int64_t>(kTile) + threadIdx.y;
    const int64_t col = blockIdx.x * static_cast<int64_t>(kTile) + threadIdx.x;
    float total = 0.0f;
    for (int64_t start = 0; start < k; start += kTile) {
        const int64_t across = start + threadIdx.x;
        const int64_t down = start + threadIdx.y;
        left[threadIdx.y][threadIdx.x] =
            row < m && across < k ? __half2float(a[row * k + across]) : 0.0f;
        right[threadIdx.y][threadIdx.x] =
            down < k && col < n ? __half2float(b[down * n + col]) : 0.0f;
        __syncthreads();
        for (int at = 0; at < kTile; ++at) {
            total += left[threadIdx.y][at] * right[at][threadIdx.x];
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        c[row * n + col] = __float2half_rn(total);
    }
}

void matmul(std::uintptr_t a, std::uintptr_t b, std::uintptr_t c,
            int m, int n, int k, std::uintptr_t stream) {
    const dim3 block(kTile, kTile);
    const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
    matmul_kernel<<<grid, block, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const __half*>(a), reinterpret_cast<const __half*>(b),
        reinterpret_cast<__half*>(c), m, n, k);
    if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
        throw std::runtime_error(cudaGetErrorString(status));
    }
}
"""

module = load_inline(
    name="matmul_inline",
    cpp_sources="#include <pybind11/pybind11.h>\n" + DECLARATION,
    cuda_sources=DECLARATION + CUDA,
    functions=["matmul"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


def custom_kernel(data: input_t) -> output_t:
    a, b = (matrix.contiguous() for matrix in data)
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    stream = torch.cuda.current_stream().cuda_stream
    module.matmul(a.data_ptr(), b.data_ptr(), c.data_ptr(), m, n, k, stream)
    return c
