// The sum in double precision. `check` generates the inputs again, in case the kernel overwrote them.
#pragma once

#include "podium.cuh"
#include "task.h"

namespace {

__global__ void add_exactly(const float* a, const float* b, double* sum, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) sum[at] = double(a[at]) + double(b[at]);
}

class Problem {
public:
    explicit Problem(const Arguments& arguments)
        : size_(int(arguments.at("size"))), a_(size_), b_(size_), output_(size_), expected_(size_) {}

    input_t generate(std::uint64_t seed) {
        seed_ = seed;
        draw_inputs();
        output_.poison();
        return {a_.data(), b_.data(), output_.data(), size_};
    }

    std::string check(output_t output) {
        if (output != output_.data()) return "return `data.output`";
        draw_inputs();
        add_exactly<<<(size_ + 255) / 256, 256>>>(a_.data(), b_.data(), expected_.data(), size_);
        return differences(output_, expected_, 1e-6);
    }

private:
    void draw_inputs() const {
        fill(a_, mixed(seed_, 1));
        fill(b_, mixed(seed_, 2));
    }

    int size_;
    std::uint64_t seed_ = 0;
    Buffer<float> a_, b_, output_;
    Buffer<double> expected_;
};

}  // namespace
