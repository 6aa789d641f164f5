//!PODIUM expect crashed
#include "task.h"

__global__ void sum(const float* values, float* output) { *output = *values; }

output_t custom_kernel(input_t data) {
    sum<<<1, 2048>>>(data.values, data.output);
    return data.output;
}
