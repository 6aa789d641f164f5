#!PODIUM leaderboard matmul
#!PODIUM needs cuda
import torch
from task import input_t, output_t
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_fp16.h>
#include <torch/extension.h>

constexpr int kTile = 16;

__global__ void matmul_kernel(const __half* a, const __half* b, __half* c,
                              int m, int n, int k) {
    __shared__ float left[kTile][kTile];
    __shared__ float right[kTile][kTile + 1];
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;
    float total = 0.0f;
    for (int start = 0; start < k; start += kTile) {
        const int across = start + threadIdx.x;
        const int down = start + threadIdx.y;
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

void matmul(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
    const int m = a.size(0), k = a.size(1), n = b.size(1);
    const dim3 block(kTile, kTile);
    const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
    matmul_kernel<<<grid, block, 0, at::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const __half*>(a.data_ptr<at::Half>()),
        reinterpret_cast<const __half*>(b.data_ptr<at::Half>()),
        reinterpret_cast<__half*>(c.data_ptr<at::Half>()), m, n, k);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

module = load_inline(
    name="matmul_inline",
    cpp_sources="void matmul(torch::Tensor a, torch::Tensor b, torch::Tensor c);",
    cuda_sources=CUDA,
    functions=["matmul"],
)


def custom_kernel(data: input_t) -> output_t:
    a, b = data
    c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    module.matmul(a, b, c)
    return c
