//!PODIUM leaderboard reduction-cu
// One block adds all numbers; the GPU could run many more blocks.
__global__ void reduction(const float* in, float* out, int size) {
    __shared__ float parts[32];
    float sum = 0.0f;
    for (int at = threadIdx.x; at < size; at += blockDim.x) {
        sum += in[at];
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int warp = 0; warp < blockDim.x / 32; warp++) {
            total += parts[warp];
        }
        out[0] = total;
    }
}
