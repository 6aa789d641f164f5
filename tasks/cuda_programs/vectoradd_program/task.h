// The input and output of the kernel; all memory is on the device.
#pragma once

struct input_t {
    const float* a;
    const float* b;
    float* output;
    int size;
};
using output_t = float*;

// Fills `data.output` with `data.a + data.b`, and returns it.
output_t custom_kernel(input_t data);
