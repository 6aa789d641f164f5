//!PODIUM expect build_failed
__global__ void vectoradd(const half* a, const half* b, half* out, int size) {
    out[0] = a[0] + b[0];  // the header of `half` is missing
}
