#!PODIUM leaderboard grayscale
#!PODIUM needs cuda
# The functions take addresses instead of tensors. Without torch's headers the build takes seconds.
import torch
from task import input_t, output_t
from torch.utils.cpp_extension import load_inline

DECLARATION = """
#include <cstdint>
void grayscale(std::uintptr_t rgb, std::uintptr_t output,
               std::int64_t pixels, std::uintptr_t stream);
"""
CUDA = r"""
#include <stdexcept>

__global__ void grayscale_kernel(const float* rgb, float* output, int64_t pixels) {
    const int64_t at = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (at < pixels) {
        output[at] = 0.2989f * rgb[3 * at] + 0.5870f * rgb[3 * at + 1]
            + 0.1140f * rgb[3 * at + 2];
    }
}

void grayscale(std::uintptr_t rgb, std::uintptr_t output,
               std::int64_t pixels, std::uintptr_t stream) {
    const int threads = 256;
    grayscale_kernel<<<(pixels + threads - 1) / threads, threads, 0,
                       reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const float*>(rgb), reinterpret_cast<float*>(output), pixels);
    if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
        throw std::runtime_error(cudaGetErrorString(status));
    }
}
"""

module = load_inline(
    name="grayscale_inline",
    cpp_sources="#include <pybind11/pybind11.h>\n" + DECLARATION,
    cuda_sources=DECLARATION + CUDA,
    functions=["grayscale"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


def custom_kernel(data: input_t) -> output_t:
    rgb, output = data
    source = rgb.contiguous()
    assert output.is_contiguous()
    stream = torch.cuda.current_stream().cuda_stream
    module.grayscale(source.data_ptr(), output.data_ptr(), output.numel(), stream)
    return output
