//!PODIUM leaderboard matmul-cu
//!PODIUM block 32
//!PODIUM grid (n + 15) // 16, (m + 15) // 16
// One warp per 16 x 16 tile, on tensor cores; tiles at the edges are padded with zeros.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

__global__ void matmul(const __half* a, const __half* b, __half* c, int m, int n, int k) {
    __shared__ __align__(32) __half left[256], right[256];
    __shared__ __align__(32) float sums[256];
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fill_fragment(z, 0.0f);
    const __half zero = __float2half(0.0f);
    for (int from = 0; from < k; from += 16) {
        for (int at = threadIdx.x; at < 256; at += 32) {
            const int i = at / 16, j = at % 16;
            left[at] = row + i < m && from + j < k ? a[(row + i) * k + from + j] : zero;
            right[at] = from + i < k && column + j < n ? b[(from + i) * n + column + j] : zero;
        }
        __syncwarp();
        wmma::load_matrix_sync(x, left, 16);
        wmma::load_matrix_sync(y, right, 16);
        wmma::mma_sync(z, x, y, z);
        __syncwarp();
    }
    wmma::store_matrix_sync(sums, z, 16, wmma::mem_row_major);
    __syncwarp();
    for (int at = threadIdx.x; at < 256; at += 32) {
        const int i = row + at / 16, j = column + at % 16;
        if (i < m && j < n) {
            c[i * n + j] = __float2half(sums[at]);
        }
    }
}
