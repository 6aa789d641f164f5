//!PODIUM expect wrong_answer
// The sum is right, but it is also written before the beginning of the output.
__global__ void reduction(const float* in, float* out, int size) {
    if (threadIdx.x == 0) {
        double total = 0.0;
        for (int at = 0; at < size; at++) {
            total += in[at];
        }
        out[0] = total;
        out[-1] = total;
    }
}
