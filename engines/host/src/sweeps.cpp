// One-sided sweeps: x' <- (1 - w) x + w (b + A x) of a chain, the best of a state's rows of an MDP.
#include <limits>

#include "change.hpp"
#include "system.hpp"
#include "team.hpp"

using prism_gpu::Change;
using prism_gpu::Index;

namespace {

template <class System>
double row_sum(const System& system, Index row, const double* x) {
    double total = system.offset ? system.offset[row] : 0.0;
    for (Index entry = system.matrix.begin(row); entry < system.matrix.end(row); entry++)
        total += system.matrix.value(entry) * x[system.matrix.columns[entry]];
    return total;
}

// Which of a unit's rows counts: a chain's only one, relaxed, or the best of an MDP's.
struct Only {
    double omega;
    template <class System>
    double operator()(const System& system, Index row, double before, const double* x) const {
        double total = row_sum(system, row, x);
        return omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
    }
};

template <bool minimise>
struct Best {
    template <class System>
    double operator()(const System& system, Index group, double, const double* x) const {
        double best = minimise ? HUGE_VAL : -HUGE_VAL;
        Index behind = system.groups[group + 1];
        for (Index row = system.groups[group]; row < behind; row++) {
            double total = row_sum(system, row, x);
            best = (minimise ? total < best : total > best) ? total : best;
        }
        return best;
    }
};

// Computes the rows, or groups of rows, from `first` to before `behind`; returns the largest change.
template <class System, class Rows>
double sweep(
    const System& system, Index first, Index behind, const Rows& rows, const double* x, double* x_new, bool absolute) {
    Change change{absolute};
    for (Index unit = first; unit < behind; unit++) {
        Index state = system.state_of(unit);
        double before = x[state], after = rows(system, unit, before, x);
        x_new[state] = after;
        change.see(before, after);
    }
    return change.largest;
}

}  // namespace

// Makes a sweep for each of `changes`, or until one changes less than `stop_below`; the vectors change
// places after each. bounds: where the pieces of rows or groups start that threads share out, and the end.
extern "C" std::int64_t pg_sweeps(
    const PgSystem* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, double omega,
    double* changes, std::int64_t sweeps, double stop_below, double* x, double* x_new, std::int32_t absolute) {
    return prism_gpu::with_types(*given, [&](const auto& system) {
        auto repeat = [&](const auto& rows) {
            return prism_gpu::repeated(threads, pieces, changes, sweeps, stop_below, [&](Index made, Index piece) {
                const double* from = made % 2 ? x_new : x;
                double* into = made % 2 ? x : x_new;
                return sweep(system, bounds[piece], bounds[piece + 1], rows, from, into, absolute != 0);
            });
        };
        if (!system.groups) return repeat(Only{omega});
        return system.minimise ? repeat(Best<true>{}) : repeat(Best<false>{});
    });
}
