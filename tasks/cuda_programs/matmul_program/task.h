// The input and output of the kernel; all memory is on the device, in row-major order.
#pragma once

struct input_t {
    const float* a;  // m x k
    const float* b;  // k x n
    float* c;        // m x n
    int m, n, k;
};
using output_t = float*;

// Fills `data.c` with the product of `data.a` and `data.b`, and returns it.
output_t custom_kernel(input_t data);
