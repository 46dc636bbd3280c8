// The largest change between two vectors.
#include "change.hpp"

#include <cstdint>

extern "C" double pg_largest_change(
    const double* before, const double* after, std::int64_t size, std::int32_t absolute) {
    prism_gpu::Change change{absolute != 0};
    for (std::int64_t index = 0; index < size; index++) change.see(before[index], after[index]);
    return change.largest;
}
