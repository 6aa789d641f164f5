//!PODIUM expect wrong_answer
#include "task.h"

// Reads `b` as if it were stored in column-major order.
__global__ void multiply(input_t data) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= data.m || column >= data.n) return;
    float sum = 0;
    for (int at = 0; at < data.k; ++at)
        sum += data.a[row * data.k + at] * data.b[(column * data.k + at) % (data.k * data.n)];
    data.c[row * data.n + column] = sum;
}

output_t custom_kernel(input_t data) {
    const dim3 threads(32, 8);
    const dim3 blocks((data.n + threads.x - 1) / threads.x, (data.m + threads.y - 1) / threads.y);
    multiply<<<blocks, threads>>>(data);
    return data.c;
}
