//!PODIUM expect crashed
#include "task.h"

__global__ void add(const float* a, const float* b, float* output) { *output = *a + *b; }

output_t custom_kernel(input_t data) {
    add<<<1, 1>>>(data.a, data.b, nullptr);
    return data.output;
}
