// Two-sided sweeps: a lower and an upper iterate side by side, each row's sums rounded outwards.
#include <algorithm>
#include <utility>
#include <vector>

#include "change.hpp"
#include "rows.hpp"
#include "team.hpp"

using prism_gpu::Index;
using prism_gpu::Rows;

namespace {

constexpr double UNIT_ROUNDOFF = 0x1p-53;
constexpr double SMALLEST = 0x1p-1020;  // as in engines/systems/two_sided.py

// The lower and the upper number.
typedef double Pair __attribute__((vector_size(16)));

// Arrays of them are aligned as those of doubles are.
struct StoredPair {
    double lower, upper;
    explicit operator Pair() const { return Pair{lower, upper}; }
};

struct How {
    double slack;
    bool monotonic_below, monotonic_above, absolute;
};

// `SweepRecord` of engines/systems/two_sided.py for one sweep, or for a part of it.
struct Record {
    double width = 0.0, rise = 0.0, fall = 0.0, crossing = 0.0, moved = 0.0;

    void join(const Record& other) {
        width = std::max(width, other.width);
        rise = std::max(rise, other.rise);
        fall = std::max(fall, other.fall);
        crossing = std::max(crossing, other.crossing);
        moved = std::max(moved, other.moved);
    }
};

// Comparisons with infinity let no NaN of a row through.
template <bool minimise, class PairRows>
Pair best_of(PairRows& rows, Index behind, double slack) {
    const double worst = minimise ? HUGE_VAL : -HUGE_VAL;
    Pair best = {worst, worst};
    while (rows.row < behind) {
        Index begin = rows.entry;
        Pair total = rows.next();
        double length = static_cast<double>(rows.entry - begin);
        double rounding = (length + slack) * UNIT_ROUNDOFF, smallest = (length + 1.0) * SMALLEST;
        total = total * Pair{1.0 - rounding, 1.0 + rounding} + Pair{-smallest, smallest};
        if constexpr (minimise)
            best = total < best ? total : best;
        else
            best = total > best ? total : best;
    }
    return best;
}

// Computes the groups from `first` to before `behind`.
template <bool minimise, class System>
__attribute__((noinline)) Record sweep(
    System system, Index first, Index behind, How how, const StoredPair* x, StoredPair* x_new) {
    Record record;
    prism_gpu::Change widths{how.absolute};
    Rows<System, StoredPair, Pair> rows(system, x, system.first_row(first));
    for (Index group = first; group < behind; group++) {
        Pair after = best_of<minimise>(rows, system.first_row(group + 1), how.slack);
        Index state = system.state_of(group);
        double low = x[state].lower, up = x[state].upper;
        double lower = 0.0 > after[0] ? 0.0 : after[0], upper = after[1];
        if (upper > up) {
            record.rise = std::max(record.rise, (upper - up) / up);
            if (how.monotonic_above) upper = up;
        }
        if (lower < low) {
            record.fall = std::max(record.fall, (low - lower) / low);
            if (how.monotonic_below) lower = low;
        }
        if (lower != low || upper != up) record.moved = 1.0;
        x_new[state] = {lower, upper};
        if (upper - lower < 0.0)
            record.crossing = std::max(record.crossing, lower - upper);
        else
            widths.see(lower, upper);
    }
    record.width = widths.largest;
    return record;
}

}  // namespace

// Makes as many sweeps as `sweeps`, or until the bounds are closer than `stop_below`; returns how many. The
// iterates, of shape (states, 2), change places after each. bounds: where the pieces of rows or groups start
// that threads share out, and the end. records: shape (sweeps, 5).
extern "C" std::int64_t pg_two_sided_sweeps(
    const PgSystem* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, double slack,
    std::int32_t monotonic_below, std::int32_t monotonic_above, std::int32_t absolute, double* records,
    std::int64_t sweeps, double stop_below, double* x, double* x_new) {
    if (sweeps <= 0) return 0;
    How how{slack, monotonic_below != 0, monotonic_above != 0, absolute != 0};
    std::vector<Record> found(std::max(threads, 1));
    Index made = 0;
    auto next = [&]() noexcept -> Index {
        Record whole;
        for (Record& part : found) whole.join(std::exchange(part, Record{}));
        double* into = records + 5 * made++;
        for (double field : {whole.width, whole.rise, whole.fall, whole.crossing, whole.moved}) *into++ = field;
        return whole.width < stop_below || made == sweeps ? -1 : pieces;
    };
    prism_gpu::with_types(*given, [&](const auto& system) {
        prism_gpu::in_phases(pieces < 2 ? 1 : threads, pieces, [&](int me, Index piece) {
            auto from = reinterpret_cast<const StoredPair*>(made % 2 ? x_new : x);
            auto into = reinterpret_cast<StoredPair*>(made % 2 ? x : x_new);
            Index first = bounds[piece], behind = bounds[piece + 1];
            found[me].join(
                system.minimise ? sweep<true>(system, first, behind, how, from, into)
                                : sweep<false>(system, first, behind, how, from, into));
        }, next);
    });
    return made;
}
