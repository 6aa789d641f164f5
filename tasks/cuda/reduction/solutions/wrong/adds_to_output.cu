//!PODIUM expect wrong_answer
//!PODIUM grid (size + block_x - 1) // block_x
// Adds to the output, which is not zero at the beginning.
__global__ void reduction(const float* in, float* out, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) {
        atomicAdd(out, in[at]);
    }
}
