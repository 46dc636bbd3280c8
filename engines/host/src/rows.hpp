// Going through the rows of a system, and what the rows of a state make of its value.
#pragma once

#include <cmath>
#include <type_traits>

#include "system.hpp"

namespace prism_gpu {

// Computes b + A x row by row. Stored: what an iterate has for each state; Sum: what is added up.
template <class System, class Stored = double, class Sum = double>
struct Rows {
    const System& system;
    const Stored* x;
    Index row, entry;

    Rows(const System& of, const Stored* from, Index first)
        : system(of), x(from), row(first), entry(of.matrix.begin(first)) {}

    // A call for each row would take a fifth of a chain's sweep.
    [[gnu::always_inline]] Sum next() {
        Sum total = system.offset ? spread(system.offset[row]) : Sum{};
        const Index end = system.matrix.end(row);
        const auto* columns = system.matrix.columns;
        for (Index at = entry; at < end; at++) total += system.matrix.value(at) * static_cast<Sum>(x[columns[at]]);
        entry = end;
        row++;
        return total;
    }

    static Sum spread(double number) {
        if constexpr (std::is_arithmetic_v<Sum>)
            return number;
        else
            return Sum{} + number;
    }
};

// A chain's only row, relaxed.
struct Only {
    double omega;
    template <class Rows>
    double operator()(Rows& rows, Index, double before) const {
        double total = rows.next();
        return omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
    }
};

// The best of an MDP's rows of a state.
template <bool minimise>
struct Best {
    template <class Rows>
    double operator()(Rows& rows, Index group, double) const {
        double best = minimise ? HUGE_VAL : -HUGE_VAL;
        for (Index behind = rows.system.groups[group + 1]; rows.row < behind;) {
            double total = rows.next();
            // One instruction each; a jump would be mispredicted every other time.
            if constexpr (minimise)
                best = total < best ? total : best;
            else
                best = total > best ? total : best;
        }
        return best;
    }
};

}  // namespace prism_gpu
