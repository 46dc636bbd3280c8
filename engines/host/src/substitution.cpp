// Back-substitution where the equations are acyclic but for loops: one walk, depth first.
#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "system.hpp"

using prism_gpu::Index;

namespace {

constexpr double IMPOSSIBLE = -1.0, NO_MEMORY = -2.0;
constexpr double UNIT = 0x1p-53;
constexpr Index SLACK = 8;  // roundings of a row besides one for each entry: scaling, offset and division
// What stands for an entry to go on with: nothing has been looked at, or everything has.
constexpr Index WAITING = -1, DONE = -2;

// A state's equation, its loop taken out; `errors` are bounds of relative errors.
template <class System>
struct Equation {
    const System& system;
    double tolerance;
    double* x;
    double* errors;

    // The value of one row; false where it leads to nothing but its own state.
    bool value_of(Index row, Index state, double& total) const {
        const auto& matrix = system.matrix;
        total = system.offset ? system.offset[row] : 0.0;
        double own = 0.0, others = 0.0, inherited = 0.0;
        for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) {
            Index column = matrix.columns[entry];
            if (column == state) {
                own += matrix.value(entry);
            } else {
                others += matrix.value(entry);
                total += matrix.value(entry) * x[column];
                inherited = std::max(inherited, errors[column]);
            }
        }
        double roundings = static_cast<double>(matrix.end(row) - matrix.begin(row) + SLACK);
        if (own > 0.0) {
            if (!(own < 1.0)) return false;
            bool whole = std::fabs(others + own - 1.0) <= tolerance;
            total /= whole ? others : 1.0 - own;
            roundings *= whole ? 2.0 : 1.0 + own / (1.0 - own);
        }
        errors[state] = std::max(errors[state], inherited + roundings * UNIT);
        return true;
    }

    bool solve(Index first, Index last, Index state) const {
        double best = system.minimise ? HUGE_VAL : -HUGE_VAL, total;
        for (Index row = first; row < last; row++) {
            if (!value_of(row, state, total)) return false;
            if (system.minimise ? total < best : total > best) best = total;
        }
        x[state] = best;
        return true;
    }
};

template <class System>
double substitute(const System& system, Index states, Index count, double tolerance, double* x, double* errors) {
    const auto& matrix = system.matrix;
    std::vector<Index> group_of(states, -1), next(count, WAITING), stack;
    for (Index group = 0; group < count; group++) group_of[system.state_of(group)] = group;
    auto first_row = [&](Index group) { return system.groups ? static_cast<Index>(system.groups[group]) : group; };
    Equation<System> equation{system, tolerance, x, errors};
    double worst = 0.0;
    for (Index root = 0; root < count; root++) {
        if (next[root] != WAITING) continue;
        stack.push_back(root);
        next[root] = matrix.begin(first_row(root));
        while (!stack.empty()) {
            Index group = stack.back(), first = first_row(group), last = first_row(group + 1);
            Index entry = next[group], end = matrix.begin(last), needed = -1;
            for (; entry < end; entry++) {
                needed = group_of[matrix.columns[entry]];
                if (needed >= 0 && needed != group && next[needed] != DONE) break;
            }
            next[group] = entry;
            if (entry < end) {
                if (next[needed] != WAITING) return IMPOSSIBLE;
                next[needed] = matrix.begin(first_row(needed));
                stack.push_back(needed);
                continue;
            }
            Index state = system.state_of(group);
            if (!equation.solve(first, last, state)) return IMPOSSIBLE;
            worst = std::max(worst, errors[state]);
            next[group] = DONE;
            stack.pop_back();
        }
    }
    return worst;
}

}  // namespace

// x: values of states that no row computes, takes those of the others. count: states that rows compute.
// errors: 0, takes bounds of the relative errors that rounding leaves. tolerance: by how much a row that
// adds up to 1 may miss it. Returns the largest error, or IMPOSSIBLE where states need each other.
extern "C" double pg_substitute(
    const PgSystem* given, std::int64_t states, std::int64_t count, double tolerance, double* x, double* errors) {
    try {
        return prism_gpu::with_types(*given, [&](const auto& system) {
            return substitute(system, states, count, tolerance, x, errors);
        });
    } catch (const std::bad_alloc&) {
        return NO_MEMORY;
    }
}
