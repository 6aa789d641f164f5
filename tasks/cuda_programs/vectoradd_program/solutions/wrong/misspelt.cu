//!PODIUM expect build_failed
#include "task.h"

output_t custom_kernel(input_t data) {
    return data.outptu;
}
