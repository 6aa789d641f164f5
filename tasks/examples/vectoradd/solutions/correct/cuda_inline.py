#!PODIUM leaderboard vectoradd
#!PODIUM needs cuda
# The usual way, with tensors as arguments; torch's headers make the build slow.
from task import input_t, output_t
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_fp16.h>

__global__ void add_kernel(const __half* a, const __half* b, __half* output, int64_t size) {
    const int64_t at = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (at < size) {
        output[at] = __float2half_rn(__half2float(a[at]) + __half2float(b[at]));
    }
}

void add(torch::Tensor a, torch::Tensor b, torch::Tensor output) {
    TORCH_CHECK(a.is_contiguous() && b.is_contiguous() && output.is_contiguous());
    const int64_t size = a.numel();
    const int threads = 256;
    add_kernel<<<(size + threads - 1) / threads, threads, 0,
                 c10::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const __half*>(a.data_ptr<at::Half>()),
        reinterpret_cast<const __half*>(b.data_ptr<at::Half>()),
        reinterpret_cast<__half*>(output.data_ptr<at::Half>()), size);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

module = load_inline(
    name="vectoradd_inline",
    cpp_sources="void add(torch::Tensor a, torch::Tensor b, torch::Tensor output);",
    cuda_sources=CUDA,
    functions=["add"],
)


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    module.add(a, b, output)
    return output
