#!PODIUM leaderboard histogram
#!PODIUM needs cuda
import torch
from task import input_t, output_t
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <torch/extension.h>

#include <algorithm>

__global__ void count_kernel(const int* values, unsigned long long* counts,
                             int64_t size, int bins) {
    extern __shared__ unsigned int mine[];
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
        mine[bin] = 0;
    }
    __syncthreads();
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t at = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
         at < size; at += stride) {
        atomicAdd(&mine[values[at]], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
        if (mine[bin] != 0) {
            atomicAdd(&counts[bin], static_cast<unsigned long long>(mine[bin]));
        }
    }
}

void count(torch::Tensor values, torch::Tensor counts) {
    const int64_t size = values.numel();
    const int bins = counts.numel();
    const int threads = 256;
    const int blocks = std::min<int64_t>((size + threads - 1) / threads, 1024);
    count_kernel<<<blocks, threads, bins * sizeof(unsigned int),
                   at::cuda::getCurrentCUDAStream()>>>(
        values.data_ptr<int>(),
        reinterpret_cast<unsigned long long*>(counts.data_ptr<int64_t>()), size, bins);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

module = load_inline(
    name="histogram_inline",
    cpp_sources="void count(torch::Tensor values, torch::Tensor counts);",
    cuda_sources=CUDA,
    functions=["count"],
)


def custom_kernel(data: input_t) -> output_t:
    values = data["values"]
    counts = torch.zeros(data["bins"], dtype=torch.int64, device=values.device)
    module.count(values, counts)
    return counts
