//!PODIUM leaderboard vectoradd-cu
//!PODIUM grid min((size + block_x - 1) // block_x, 1056)
// A fixed number of blocks processes the vectors in a grid-stride loop.
#include <cuda_fp16.h>

namespace {
__device__ __half plus(__half x, __half y) { return __hadd(x, y); }
}

__global__ void vectoradd(const __half* a, const __half* b, __half* out, int size) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < size; at += gridDim.x * blockDim.x) {
        out[at] = plus(a[at], b[at]);
    }
}
