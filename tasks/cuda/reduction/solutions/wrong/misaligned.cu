//!PODIUM expect crashed
// Reads four numbers at once from an address that is not aligned for them.
__global__ void reduction(const float* in, float* out, int size) {
    const float4 four = *reinterpret_cast<const float4*>(in + 1);
    out[0] = (four.x + four.y) + (four.z + four.w);
}
