//!PODIUM expect wrong_answer
//!PODIUM grid max(1, size // block_x)
// Ignores the elements after the last complete block.
#include <cuda_fp16.h>

__global__ void vectoradd(const __half* a, const __half* b, __half* out, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) {
        out[at] = __hadd(a[at], b[at]);
    }
}
