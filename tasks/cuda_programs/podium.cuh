// Shared by the evaluation and the references: a case, device memory, random numbers from a seed.
// Everything is local to the file that includes this, so a submission cannot replace it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include <cuda_runtime.h>

namespace {

// The exit statuses of the protocol.
enum Exit { kPassed = 0, kUsage = 2, kCudaFailed = 110, kNoLine = 111, kFailed = 112, kBadCase = 113 };

[[noreturn, maybe_unused]] void leave(Exit status, const std::string& words) {
    std::fprintf(stderr, "%s\n", words.c_str());
    std::fflush(nullptr);
    std::_Exit(status);
}

[[maybe_unused]] void require(cudaError_t status, const char* what) {
    if (status != cudaSuccess) leave(kCudaFailed, std::string(what) + ": " + cudaGetErrorString(status));
}

// The arguments of one case in task.yml.
class Arguments {
public:
    explicit Arguments(std::map<std::string, long long> values) : values_(std::move(values)) {}

    long long at(const std::string& name) const {
        const auto found = values_.find(name);
        if (found == values_.end()) leave(kBadCase, "the case has no " + name);
        return found->second;
    }

private:
    std::map<std::string, long long> values_;
};

// Device memory for `count` elements.
template <typename T>
class Buffer {
public:
    explicit Buffer(std::size_t count) : count_(count) {
        require(cudaMalloc(&data_, count * sizeof(T)), "memory for the case");
    }
    ~Buffer() { cudaFree(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    T* data() const { return data_; }
    std::size_t count() const { return count_; }

    // Sets every byte to 0xff, which is NaN in every floating-point type: unwritten elements are wrong.
    void poison() const { require(cudaMemset(data_, 0xff, count_ * sizeof(T)), "poison"); }

    T read(std::size_t at) const {
        T value;
        require(cudaMemcpy(&value, data_ + at, sizeof(T), cudaMemcpyDeviceToHost), "a result");
        return value;
    }

private:
    T* data_ = nullptr;
    std::size_t count_;
};

// Sebastiano Vigna's splitmix64: numbers of two seeds or two indices are independent.
__host__ __device__ inline std::uint64_t mixed(std::uint64_t seed, std::uint64_t at) {
    std::uint64_t z = seed + (at + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

__global__ void draw(float* data, std::size_t count, std::uint64_t seed) {
    const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
    for (std::size_t at = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += step)
        data[at] = float(mixed(seed, at) >> 40) * (2.0f / (1 << 24)) - 1.0f;
}

// Fills a buffer with numbers from [-1, 1), which depend only on the seed.
[[maybe_unused]] void fill(const Buffer<float>& buffer, std::uint64_t seed) {
    draw<<<1024, 256>>>(buffer.data(), buffer.count(), mixed(seed, 0));
    require(cudaGetLastError(), "inputs");
}

// The number of wrong elements, and the index of the first one.
struct Mismatch {
    unsigned long long count;
    unsigned long long first;
};

// Counts the wrong elements; NaN is wrong, because every comparison with it is false.
__global__ void compare(const float* got, const double* expected, std::size_t count, double tolerance,
                        Mismatch* found) {
    const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
    for (std::size_t at = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += step) {
        if (fabs(double(got[at]) - expected[at]) <= tolerance) continue;
        atomicAdd(&found->count, 1ull);
        atomicMin(&found->first, static_cast<unsigned long long>(at));
    }
}

// Why the output is wrong; empty if each element is within `tolerance` of the expected one.
[[maybe_unused]] std::string differences(const Buffer<float>& got, const Buffer<double>& expected,
                                         double tolerance) {
    const Buffer<Mismatch> found(1);
    const Mismatch none{0, ~0ull};
    require(cudaMemcpy(found.data(), &none, sizeof none, cudaMemcpyHostToDevice), "the comparison");
    compare<<<1024, 256>>>(got.data(), expected.data(), got.count(), tolerance, found.data());
    require(cudaGetLastError(), "the comparison");
    const Mismatch seen = found.read(0);
    if (seen.count == 0) return "";
    char words[200];
    std::snprintf(words, sizeof words,
                  "%llu of %zu elements differ; the first at [%llu]: got %.9g, expected %.9g",
                  seen.count, got.count(), seen.first, got.read(seen.first), expected.read(seen.first));
    return words;
}

}  // namespace
