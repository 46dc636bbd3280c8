// Sums over rows in quadruple precision: what known values earn, and what a step of each choice of an
// MDP gains, b + sum of p x' - x = b + sum of p (x' - x) - (1 - sum of p) x.
//
// Written with differences, a step that leads back adds nothing, and what the values of neighbouring
// states have in common is not cancelled out of sums of products.
#include <cstdint>

#include "wide.hpp"

using prism_gpu::Index;
using prism_gpu::Wide;

namespace {
constexpr double ROUNDED_SUM = 1e-13;  // as in engines/model/row_sums.py

Wide magnitude(Wide value) { return value < 0 ? -value : value; }
}  // namespace

// b + sum of p x over the entries of each row where x is known: the nearest doubles, and the rest.
extern "C" void pg_earned(
    std::int64_t rows, const std::int64_t* offsets, const std::int64_t* columns, const double* probabilities,
    const double* offset, const double* known, double* high, double* low) {
    for (Index row = 0; row < rows; row++) {
        Wide sum = offset ? offset[row] : 0.0;
        for (Index e = offsets[row]; e < offsets[row + 1]; e++) {
            if (probabilities[e] > 0.0) sum += static_cast<Wide>(probabilities[e]) * known[columns[e]];
        }
        high[row] = static_cast<double>(sum);
        low[row] = sum - sum == 0 ? static_cast<double>(sum - static_cast<Wide>(high[row])) : 0.0;
    }
}

// state: of each row; offset: b or null; values are high + low, each with a relative error of at most
// `digits`. A row that leads to an infinite value gains that, and its doubt is 0.
extern "C" void pg_gains(
    std::int64_t rows, const std::int64_t* offsets, const std::int64_t* columns, const double* probabilities,
    const std::int64_t* state, const double* offset, const double* high, const double* low, double digits,
    double* gains, double* doubts) {
    for (Index row = 0; row < rows; row++) {
        Index own = state[row];
        Wide before = static_cast<Wide>(high[own]) + low[own];
        Wide gain = offset ? offset[row] : 0.0, terms = gain, off = 0, missing = 1;
        double infinite = 0.0;
        for (Index e = offsets[row]; e < offsets[row + 1]; e++) {
            Index other = columns[e];
            missing -= probabilities[e];
            if (other == own || !(probabilities[e] > 0.0)) continue;
            if (high[other] - high[other] != 0.0) {
                infinite = high[other];
                break;
            }
            Wide after = static_cast<Wide>(high[other]) + low[other], weight = probabilities[e];
            Wide step = weight * (after - before);
            gain += step;
            terms += magnitude(step);
            off += weight * (magnitude(after) + magnitude(before));
        }
        if (infinite != 0.0) {
            gains[row] = infinite;
            doubts[row] = 0.0;
            continue;
        }
        if (magnitude(missing) > ROUNDED_SUM) {
            Wide lost = missing * before;
            gain -= lost;
            terms += magnitude(lost);
            off += magnitude(lost);
        }
        double units = static_cast<double>(offsets[row + 1] - offsets[row]) + 4.0;
        gains[row] = static_cast<double>(gain);
        // That the gain itself is rounded to a double is a part of the last term.
        doubts[row] = static_cast<double>(off * Wide(digits) + terms * (Wide(units) * prism_gpu::WIDE_ROUNDOFF)) * 1.001 +
                      static_cast<double>(magnitude(gain)) * 0x1p-52;
    }
}
