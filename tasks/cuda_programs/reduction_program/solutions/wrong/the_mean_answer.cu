//!PODIUM expect wrong_answer
#include "task.h"

// Writes 0, which is the mean of the sum over all inputs.
output_t custom_kernel(input_t data) {
    cudaMemsetAsync(data.output, 0, sizeof(float));
    return data.output;
}
