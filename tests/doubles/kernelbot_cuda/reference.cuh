#ifndef REFERENCE_CUH
#define REFERENCE_CUH

#include <cmath>
#include <random>

#include "task.h"
#include "utils.h"

#ifndef CHECKED
#error "the task's defines are missing"
#endif

static input_t generate_input(int size, int seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> numbers(-1, 1);
    input_t data(size);
    for (float& each : data) each = numbers(random);
    return data;
}

static output_t ref_kernel(input_t data) {
    for (float& each : data) each = FACTOR * each + 1;
    return data;
}

static void check_implementation(TestReporter& reporter, const input_t& data, const output_t& output) {
    const output_t expected = ref_kernel(data);
    if (output.size() != expected.size()) return reporter.fail("another size");
    for (std::size_t at = 0; at < expected.size(); ++at)
        if (!(std::fabs(output[at] - expected[at]) <= 1e-6f))
            return reporter.fail("mismatch\nat " + std::to_string(at));
}

#endif
