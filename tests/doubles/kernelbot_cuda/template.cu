//!POPCORN leaderboard affine-cuda
#include "task.h"

output_t custom_kernel(input_t data) {
    for (float& each : data) each = 2 * each + 1;
    return data;
}
