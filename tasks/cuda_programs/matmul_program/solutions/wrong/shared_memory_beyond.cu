//!PODIUM expect build_failed
#include "task.h"

// ptxas refuses more static shared memory than a block has.
__global__ void multiply(input_t data) {
    __shared__ float tile[256][256];
    tile[threadIdx.y][threadIdx.x] = data.a[threadIdx.x];
    __syncthreads();
    data.c[threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

output_t custom_kernel(input_t data) {
    multiply<<<1, dim3(32, 32)>>>(data);
    return data.c;
}
