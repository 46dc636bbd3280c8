// One-sided sweeps whose numbers are stored in single precision; sums are taken in double precision.
#include <algorithm>
#include <bit>
#include <limits>

#include "change.hpp"
#include "rows.hpp"
#include "team.hpp"

using prism_gpu::Best;
using prism_gpu::Change;
using prism_gpu::Index;
using prism_gpu::Only;
using prism_gpu::Rows;
using prism_gpu::System;

namespace {

// Changes of smaller values are measured against this: near the end of the range they jump.
constexpr double LEAST_SCALE = 0x1p-100;

template <class Matrix>
struct Single : Matrix {
    const float* singles;

    double value(Index entry) const { return singles[entry]; }
};

// Rounds to nearest or down. A positive number's neighbour below is that of its bits: no jump that would be
// mispredicted every other time.
template <bool nearest>
float kept(double value) {
    float rounded = static_cast<float>(value);
    if constexpr (nearest) return rounded;
    bool above = rounded > value;
    if (rounded > 0.0f) return std::bit_cast<float>(std::bit_cast<std::int32_t>(rounded) - above);
    return above ? std::nextafter(rounded, -std::numeric_limits<float>::infinity()) : rounded;
}

// Computes the rows, or groups of rows, from `first` to before `behind`; returns the largest change.
template <bool nearest, class System, class Made>
__attribute__((noinline)) double sweep(
    System system, Index first, Index behind, const Made& made, bool absolute, const float* x, float* x_new) {
    Change change{absolute};
    Rows<System, float> rows(system, x, system.first_row(first));
    for (Index unit = first; unit < behind; unit++) {
        Index state = system.state_of(unit);
        double before = x[state];
        float after = kept<nearest>(made(rows, unit, before));
        x_new[state] = after;
        change.see_share(std::fabs(after - before), absolute ? 1.0 : std::max(LEAST_SCALE, std::fabs(before)));
    }
    return change.largest;
}

}  // namespace

// As `pg_sweeps`, but for what is stored in single precision: the values of the matrix and the offset, which
// stand for those of the system, and the iterates. nearest: whether iterates are rounded to nearest; else down.
extern "C" std::int64_t pg_single_sweeps(
    const PgSystem* given, const float* values, const float* offset, const std::int64_t* bounds, std::int64_t pieces,
    std::int32_t threads, double omega, double* changes, std::int64_t sweeps, double stop_below, float* x,
    float* x_new, std::int32_t absolute, std::int32_t nearest) {
    return prism_gpu::with_types(*given, [&]<class Matrix>(const System<Matrix>& of) {
        System<Single<Matrix>, float> system{{of.matrix, values}, of.groups, of.states, offset, omega, of.minimise};
        auto repeat = [&](const auto& made) {
            auto work = [&](Index number, Index piece) {
                const float* from = number % 2 ? x_new : x;
                float* into = number % 2 ? x : x_new;
                Index first = bounds[piece], behind = bounds[piece + 1];
                return nearest ? sweep<true>(system, first, behind, made, absolute != 0, from, into)
                               : sweep<false>(system, first, behind, made, absolute != 0, from, into);
            };
            return prism_gpu::repeated(threads, pieces, changes, sweeps, stop_below, work);
        };
        if (!system.groups) return repeat(Only{omega});
        return system.minimise ? repeat(Best<true>{}) : repeat(Best<false>{});
    });
}
