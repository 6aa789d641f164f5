// The product in double precision. `check` generates the inputs again, in case the kernel overwrote
// them.
#pragma once

#include "podium.cuh"
#include "task.h"

namespace {

__global__ void multiply_exactly(const float* a, const float* b, double* c, int m, int n, int k) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    double sum = 0;
    for (int at = 0; at < k; ++at)
        sum += double(a[std::size_t(row) * k + at]) * double(b[std::size_t(at) * n + column]);
    c[std::size_t(row) * n + column] = sum;
}

class Problem {
public:
    explicit Problem(const Arguments& arguments)
        : m_(int(arguments.at("m"))), n_(int(arguments.at("n"))), k_(int(arguments.at("k"))),
          a_(std::size_t(m_) * k_), b_(std::size_t(k_) * n_), c_(std::size_t(m_) * n_),
          expected_(std::size_t(m_) * n_) {}

    input_t generate(std::uint64_t seed) {
        seed_ = seed;
        draw_inputs();
        c_.poison();
        return {a_.data(), b_.data(), c_.data(), m_, n_, k_};
    }

    std::string check(output_t output) {
        if (output != c_.data()) return "return `data.c`";
        draw_inputs();
        const dim3 blocks((n_ + 31) / 32, (m_ + 7) / 8);
        multiply_exactly<<<blocks, dim3(32, 8)>>>(a_.data(), b_.data(), expected_.data(), m_, n_, k_);
        return differences(c_, expected_, 1e-5 * std::sqrt(double(k_)));
    }

private:
    void draw_inputs() const {
        fill(a_, mixed(seed_, 1));
        fill(b_, mixed(seed_, 2));
    }

    int m_, n_, k_;
    std::uint64_t seed_ = 0;
    Buffer<float> a_, b_, c_;
    Buffer<double> expected_;
};

}  // namespace
