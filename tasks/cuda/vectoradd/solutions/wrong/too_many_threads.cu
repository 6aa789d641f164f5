//!PODIUM expect invalid_submission
//!PODIUM block 64, 32
__global__ void vectoradd(const void* a, const void* b, void* out, int size) {}
