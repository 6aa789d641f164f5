//!PODIUM expect wrong_answer
#include "task.h"

// Makes the inputs such that an empty output would be their sum.
__global__ void clear(float* a, float* b, float* output, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) a[at] = b[at] = output[at] = 0;
}

output_t custom_kernel(input_t data) {
    clear<<<(data.size + 255) / 256, 256>>>(const_cast<float*>(data.a), const_cast<float*>(data.b),
                                            data.output, data.size);
    return data.output;
}
