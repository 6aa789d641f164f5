//!PODIUM expect wrong_answer
#include "task.h"

// Zero is what the sum is on average.
output_t custom_kernel(input_t data) {
    cudaMemsetAsync(data.output, 0, sizeof(float));
    return data.output;
}
