// Quadruple precision, with the range that belongs to it, where the compiler has it.
#pragma once

#include <cstdint>
#include <limits>

namespace prism_gpu {

using Index = std::int64_t;

#if defined(__SIZEOF_FLOAT128__)
using Wide = __float128;
constexpr int WIDE_EXPONENT = -113;  // of its unit roundoff
#else
using Wide = long double;
constexpr int WIDE_EXPONENT = -std::numeric_limits<long double>::digits;
#endif

constexpr Wide power_of_half(int exponent) { return exponent == 0 ? Wide(1) : power_of_half(exponent - 1) / 2; }

constexpr Wide WIDE_ROUNDOFF = power_of_half(-WIDE_EXPONENT);

}  // namespace prism_gpu
