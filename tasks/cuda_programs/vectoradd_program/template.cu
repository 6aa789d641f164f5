//!PODIUM leaderboard vectoradd_program
#include "task.h"

__global__ void add(const float* a, const float* b, float* output, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) output[at] = a[at] + b[at];
}

output_t custom_kernel(input_t data) {
    add<<<(data.size + 255) / 256, 256>>>(data.a, data.b, data.output, data.size);
    return data.output;
}
