// The input and output of the kernel; all memory is on the device, row after row.
#pragma once

struct input_t {
    const float* a;  // m rows of k
    const float* b;  // k rows of n
    float* c;        // m rows of n
    int m, n, k;
};
using output_t = float*;

// Fills `data.c` with the product of `data.a` and `data.b`, and returns it.
output_t custom_kernel(input_t data);
