#!PODIUM leaderboard softmax
#!PODIUM needs cuda
import torch
from task import input_t, output_t
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <math_constants.h>
#include <torch/extension.h>

constexpr int kThreads = 256;

__device__ float over_block(float value, bool maximum, float* shared) {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int reach = kThreads / 2; reach > 0; reach /= 2) {
        if (threadIdx.x < reach) {
            const float other = shared[threadIdx.x + reach];
            const float mine = shared[threadIdx.x];
            shared[threadIdx.x] = maximum ? fmaxf(mine, other) : mine + other;
        }
        __syncthreads();
    }
    const float result = shared[0];
    __syncthreads();
    return result;
}

__global__ void softmax_kernel(const float* source, float* output, int64_t cols) {
    __shared__ float shared[kThreads];
    const float* row = source + blockIdx.x * cols;
    float* target = output + blockIdx.x * cols;
    float top = -CUDART_INF_F;
    for (int64_t at = threadIdx.x; at < cols; at += kThreads) {
        top = fmaxf(top, row[at]);
    }
    top = over_block(top, true, shared);
    float total = 0.0f;
    for (int64_t at = threadIdx.x; at < cols; at += kThreads) {
        total += expf(row[at] - top);
    }
    total = over_block(total, false, shared);
    for (int64_t at = threadIdx.x; at < cols; at += kThreads) {
        target[at] = expf(row[at] - top) / total;
    }
}

void softmax(torch::Tensor source, torch::Tensor output) {
    softmax_kernel<<<source.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        source.data_ptr<float>(), output.data_ptr<float>(), source.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

module = load_inline(
    name="softmax_inline",
    cpp_sources="void softmax(torch::Tensor source, torch::Tensor output);",
    cuda_sources=CUDA,
    functions=["softmax"],
)


def custom_kernel(data: input_t) -> output_t:
    output = torch.empty_like(data)
    module.softmax(data, output)
    return output
