//!PODIUM expect wrong_answer
// Every element is right, but it also writes beyond the end of the output.
#include <cuda_fp16.h>

__global__ void vectoradd(const __half* a, const __half* b, __half* out, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = __hadd(a[at], b[at]);
}
