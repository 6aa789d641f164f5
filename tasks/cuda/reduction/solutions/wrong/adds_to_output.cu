//!PODIUM expect wrong_answer
//!PODIUM grid (size + block_x - 1) // block_x
// The output does not hold zero before.
__global__ void reduction(const float* in, float* out, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) {
        atomicAdd(out, in[at]);
    }
}
