//!PODIUM expect wrong_answer
// Adds in place first; this task does not allow writing to an input.
#include <cuda_fp16.h>

__global__ void vectoradd(__half* a, const __half* b, __half* out, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) {
        a[at] = __hadd(a[at], b[at]);
        out[at] = a[at];
    }
}
