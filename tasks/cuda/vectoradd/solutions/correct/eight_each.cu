//!PODIUM leaderboard vectoradd-cu
//!PODIUM block 512
//!PODIUM grid (size + 8*block_x - 1) // (8*block_x)
// Loads 16 bytes at once; the remaining elements at the end are added one by one.
#include <cuda_fp16.h>

extern "C" __global__ void vectoradd(const __half* __restrict__ a, const __half* __restrict__ b,
                                     __half* __restrict__ out, int size) {
    const int at = 8 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (at + 8 <= size) {
        const uint4 x = *reinterpret_cast<const uint4*>(a + at);
        const uint4 y = *reinterpret_cast<const uint4*>(b + at);
        uint4 z;
        const __half2 *left = reinterpret_cast<const __half2*>(&x);
        const __half2 *right = reinterpret_cast<const __half2*>(&y);
        __half2* sum = reinterpret_cast<__half2*>(&z);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sum[i] = __hadd2(left[i], right[i]);
        }
        *reinterpret_cast<uint4*>(out + at) = z;
    } else {
        for (int i = at; i < size; i++) {
            out[i] = __hadd(a[i], b[i]);
        }
    }
}
