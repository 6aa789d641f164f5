//!PODIUM expect timed_out
// Waits for a value that is never written.
__device__ volatile int never = 0;

__global__ void reduction(const float* in, float* out, int size) {
    while (never == 0) {
    }
    out[0] = in[0];
}
