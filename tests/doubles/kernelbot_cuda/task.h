#ifndef TASK_H
#define TASK_H

#include <array>
#include <vector>

using input_t = std::vector<float>;
using output_t = std::vector<float>;

constexpr std::array<const char*, 2> ArgumentNames = {"size", "seed"};

output_t custom_kernel(input_t data);

#endif
