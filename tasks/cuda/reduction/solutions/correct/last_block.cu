//!PODIUM leaderboard reduction-cu
//!PODIUM block 256
//!PODIUM grid min((size + 8191) // 8192, 2048)
//!PODIUM shared 4*block_x
// Each block writes its sum to a buffer of the kernel; the block that ends last adds them up.
__device__ float partial[2048];
__device__ unsigned int done = 0;

__device__ float block_sum(float value, float* mine) {
    mine[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            mine[threadIdx.x] += mine[threadIdx.x + half];
        }
        __syncthreads();
    }
    return mine[0];
}

__global__ void reduction(const float* __restrict__ in, float* out, int size) {
    extern __shared__ float mine[];
    __shared__ bool last;
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int threads = gridDim.x * blockDim.x;
    float sum = 0.0f;
    for (int at = thread; at < size / 4; at += threads) {
        const float4 four = reinterpret_cast<const float4*>(in)[at];
        sum += (four.x + four.y) + (four.z + four.w);
    }
    if (thread < size % 4) {
        sum += in[size - 1 - thread];
    }
    sum = block_sum(sum, mine);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(&done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    sum = 0.0f;
    for (int at = threadIdx.x; at < gridDim.x; at += blockDim.x) {
        sum += reinterpret_cast<volatile float*>(partial)[at];
    }
    __syncthreads();
    sum = block_sum(sum, mine);
    if (threadIdx.x == 0) {
        out[0] = sum;
        done = 0;
    }
}
