//!PODIUM expect crashed
// Writes to an address that is not mapped.
__global__ void reduction(const float* in, float* out, int size) {
    out[1ull << 40] = in[0];
}
