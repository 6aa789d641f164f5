//!PODIUM expect wrong_answer
#include "task.h"

// Adds to the output's initial value, which is NaN.
__global__ void sum(const float* values, float* output, int size) {
    for (int at = threadIdx.x; at < size; at += blockDim.x) atomicAdd(output, values[at]);
}

output_t custom_kernel(input_t data) {
    sum<<<1, 256>>>(data.values, data.output, data.size);
    return data.output;
}
