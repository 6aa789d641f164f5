//!PODIUM expect build_failed
#include "task.h"

output_t another_kernel(input_t data) {
    return data.output;
}
