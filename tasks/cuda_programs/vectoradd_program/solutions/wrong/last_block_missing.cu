//!PODIUM expect wrong_answer
#include "task.h"

__global__ void add(const float* a, const float* b, float* output) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    output[at] = a[at] + b[at];
}

output_t custom_kernel(input_t data) {
    if (data.size >= 256) add<<<data.size / 256, 256>>>(data.a, data.b, data.output);
    return data.output;
}
