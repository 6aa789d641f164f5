//!PODIUM expect wrong_answer
#include "task.h"

// Rounds each number to the precision of TF32.
__device__ float rounded(float value) {
    return __uint_as_float((__float_as_uint(value) + 0x1000u) & ~0x1fffu);
}

__global__ void multiply(input_t data) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= data.m || column >= data.n) return;
    float sum = 0;
    for (int at = 0; at < data.k; ++at)
        sum += rounded(data.a[row * data.k + at]) * rounded(data.b[at * data.n + column]);
    data.c[row * data.n + column] = sum;
}

output_t custom_kernel(input_t data) {
    multiply<<<dim3((data.n + 31) / 32, (data.m + 7) / 8), dim3(32, 8)>>>(data);
    return data.c;
}
