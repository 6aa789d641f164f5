//!PODIUM expect invalid_submission
__global__ void vectoradd(const void* a, const void* b, void* out, long long size) {}
