//!PODIUM leaderboard matmul-cu
// One thread per element; every number is read from global memory each time.
#include <cuda_fp16.h>

__global__ void matmul(const __half* a, const __half* b, __half* c, int m, int n, int k) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) {
        return;
    }
    float sum = 0.0f;
    for (int i = 0; i < k; i++) {
        sum += __half2float(a[row * k + i]) * __half2float(b[i * n + column]);
    }
    c[row * n + column] = __float2half(sum);
}
