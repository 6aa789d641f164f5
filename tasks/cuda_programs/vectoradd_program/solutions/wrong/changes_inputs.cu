//!PODIUM expect wrong_answer
#include "task.h"

// Sets the inputs and the output to zero, so that the output is the sum of the inputs.
__global__ void clear(float* a, float* b, float* output, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) a[at] = b[at] = output[at] = 0;
}

output_t custom_kernel(input_t data) {
    clear<<<(data.size + 255) / 256, 256>>>(const_cast<float*>(data.a), const_cast<float*>(data.b),
                                            data.output, data.size);
    return data.output;
}
