//!PODIUM expect crashed
//!PODIUM block 32, 32
// 1024 threads, each with more registers than a multiprocessor has for that many threads.
#include <cuda_fp16.h>

__global__ void __launch_bounds__(128) matmul(const __half* a, const __half* b, __half* c, int m,
                                              int n, int k) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    float sums[120];
#pragma unroll
    for (int i = 0; i < 120; i++) {
        sums[i] = __half2float(a[(row + i) % m * k]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 120; i++) {
        sums[0] += sums[i] * sums[(7 * i + 3) % 120];
    }
    if (row < m && column < n) {
        c[row * n + column] = __float2half(sums[0]);
    }
}
