//!PODIUM expect wrong_answer
//!PODIUM grid max(1, size // block_x)
// Leaves out what does not fill a block.
#include <cuda_fp16.h>

__global__ void vectoradd(const __half* a, const __half* b, __half* out, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) {
        out[at] = __hadd(a[at], b[at]);
    }
}
