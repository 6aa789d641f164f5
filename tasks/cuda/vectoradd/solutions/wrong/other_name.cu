//!PODIUM expect invalid_submission
__global__ void vector_add(const void* a, const void* b, void* out, int size) {}
