// The input and output of the kernel; all memory is on the device.
#pragma once

struct input_t {
    const float* values;
    float* output;
    int size;
};
using output_t = float*;

// Writes the sum of `data.values` to `*data.output`, and returns `data.output`.
output_t custom_kernel(input_t data);
