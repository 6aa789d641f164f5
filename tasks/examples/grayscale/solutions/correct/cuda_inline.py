#!PODIUM leaderboard grayscale
#!PODIUM needs cuda
from task import input_t, output_t
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <torch/extension.h>

__global__ void grayscale_kernel(const float* rgb, float* output, int64_t pixels) {
    const int64_t at = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (at < pixels) {
        output[at] = 0.2989f * rgb[3 * at] + 0.5870f * rgb[3 * at + 1]
            + 0.1140f * rgb[3 * at + 2];
    }
}

void grayscale(torch::Tensor rgb, torch::Tensor output) {
    const int64_t pixels = output.numel();
    const int threads = 256;
    grayscale_kernel<<<(pixels + threads - 1) / threads, threads, 0,
                       at::cuda::getCurrentCUDAStream()>>>(
        rgb.data_ptr<float>(), output.data_ptr<float>(), pixels);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

module = load_inline(
    name="grayscale_inline",
    cpp_sources="void grayscale(torch::Tensor rgb, torch::Tensor output);",
    cuda_sources=CUDA,
    functions=["grayscale"],
)


def custom_kernel(data: input_t) -> output_t:
    rgb, output = data
    module.grayscale(rgb, output)
    return output
