//!PODIUM leaderboard matmul-cu
//!PODIUM block 32, 32
//!PODIUM shared 65536
// Tiles of 32 x 256 and 256 x 32 numbers in single precision need more than 48 KiB of shared memory.
#include <cuda_fp16.h>

constexpr int EDGE = 32, DEPTH = 256;

__global__ void matmul(const __half* a, const __half* b, __half* c, int m, int n, int k) {
    extern __shared__ float tiles[];
    float* left = tiles;                  // EDGE rows of DEPTH
    float* right = tiles + EDGE * DEPTH;  // DEPTH rows of EDGE
    const int x = threadIdx.x, y = threadIdx.y;
    const int column = blockIdx.x * EDGE + x, row = blockIdx.y * EDGE + y;
    float sum = 0.0f;
    for (int from = 0; from < k; from += DEPTH) {
        for (int i = x; i < DEPTH; i += EDGE) {
            const bool inside = row < m && from + i < k;
            left[y * DEPTH + i] = inside ? __half2float(a[row * k + from + i]) : 0.0f;
        }
        for (int i = y; i < DEPTH; i += EDGE) {
            const bool inside = from + i < k && column < n;
            right[i * EDGE + x] = inside ? __half2float(b[(from + i) * n + column]) : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < DEPTH; i++) {
            sum += left[y * DEPTH + i] * right[i * EDGE + x];
        }
        __syncthreads();
    }
    if (row < m && column < n) {
        c[row * n + column] = __float2half(sum);
    }
}
