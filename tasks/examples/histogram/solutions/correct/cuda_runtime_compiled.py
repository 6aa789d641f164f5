#!PODIUM leaderboard histogram
#!PODIUM needs cuda
# NVRTC compiles the kernel in this process, in a fraction of a second and without a host compiler.
import torch
from task import input_t, output_t

CUDA = r"""
extern "C" __global__ void count(const int* values, unsigned long long* counts,
                                 int size, int bins) {
    extern __shared__ unsigned int mine[];
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
        mine[bin] = 0;
    }
    __syncthreads();
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long at = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
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
"""
THREADS = 256

count = torch.cuda._compile_kernel(CUDA, "count")


def custom_kernel(data: input_t) -> output_t:
    values, bins = data["values"], data["bins"]
    counts = torch.zeros(bins, dtype=torch.int64, device=values.device)
    size = values.numel()
    blocks = min(-(-size // THREADS), 1024)
    count(
        grid=(blocks, 1, 1),
        block=(THREADS, 1, 1),
        args=[values, counts, size, bins],
        shared_mem=4 * bins,
    )
    return counts
