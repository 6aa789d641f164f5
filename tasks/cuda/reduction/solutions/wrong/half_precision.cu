//!PODIUM expect wrong_answer
// Rounds every number to half precision first.
#include <cuda_fp16.h>

__global__ void reduction(const float* in, float* out, int size) {
    __shared__ float parts[1024];
    float sum = 0.0f;
    for (int at = threadIdx.x; at < size; at += blockDim.x) {
        sum += __half2float(__float2half(in[at]));
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int thread = 0; thread < blockDim.x; thread++) {
            total += parts[thread];
        }
        out[0] = total;
    }
}
