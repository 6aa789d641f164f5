// The sum in double precision. `check` generates the inputs again, in case the kernel overwrote them.
#pragma once

#include "podium.cuh"
#include "task.h"

namespace {

__global__ void sum_exactly(const float* values, double* sum, int size) {
    __shared__ double parts[256];
    double part = 0;
    for (long long at = blockIdx.x * 256 + threadIdx.x; at < size; at += gridDim.x * 256)
        part += values[at];
    parts[threadIdx.x] = part;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0) atomicAdd(sum, parts[0]);
}

class Problem {
public:
    explicit Problem(const Arguments& arguments)
        : size_(int(arguments.at("size"))), values_(size_), output_(1), expected_(1) {}

    input_t generate(std::uint64_t seed) {
        seed_ = seed;
        fill(values_, seed_);
        output_.poison();
        return {values_.data(), output_.data(), size_};
    }

    std::string check(output_t output) {
        if (output != output_.data()) return "return `data.output`";
        fill(values_, seed_);
        require(cudaMemset(expected_.data(), 0, sizeof(double)), "the reference");
        sum_exactly<<<512, 256>>>(values_.data(), expected_.data(), size_);
        return differences(output_, expected_, 1e-4 * std::sqrt(double(size_)));
    }

private:
    int size_;
    std::uint64_t seed_ = 0;
    Buffer<float> values_, output_;
    Buffer<double> expected_;
};

}  // namespace
