// A system's strongly connected components in order, and where a walk over them is.
#pragma once

#include "system.hpp"

// `HostOrder` of engines/host/topological.py; its arrays are of the type of the matrix's columns.
struct PgOrder {
    std::int64_t components;
    const void* found;      // the states, component after component, each after those that it leads to
    const void* bounds;     // where each component begins in `found`, and the end of the last
    const void* component;  // of each state; -1 for known ones
};

namespace prism_gpu {

// Why a walk stopped: at its end; at a component that is solved elsewhere, whose sweeps are too slow, or
// that reached the limit of sweeps; anywhere, to report; where a lower bound exceeds its upper one.
enum Reason : std::int32_t { DONE, OUTSIDE, SLOW, OUT_OF_BUDGET, LIMIT, CROSSED };

// How a component is solved: by the walk, elsewhere, or by the walk however slow it is.
enum How : std::int64_t { HERE, ELSEWHERE, PATIENTLY };

// The equations x = b + A x by states, where known states have no row, and their components.
template <class Matrix>
struct Walk {
    using Column = typename Matrix::ColumnType;
    System<Matrix> system;
    Index components;
    const Column *found, *bounds, *component;

    Index begin(Index own) const { return bounds[own]; }
    Index end(Index own) const { return bounds[own + 1]; }
    Index first_entry(Index state) const { return system.matrix.begin(system.groups[state]); }
    Index behind_entry(Index state) const { return system.matrix.begin(system.groups[state + 1]); }

    // The entries of a component's rows, and two for each state itself.
    Index weight(Index own) const {
        Index weight = 0;
        for (Index at = begin(own); at < end(own); at++) weight += behind_entry(found[at]) - first_entry(found[at]) + 2;
        return weight;
    }

    // The largest of what belongs to the components that one leads to, or 0.
    template <class Number>
    Number largest_below(Index own, const Number* of) const {
        Number largest = 0;
        for (Index at = begin(own); at < end(own); at++) {
            Index behind = behind_entry(found[at]);
            for (Index entry = first_entry(found[at]); entry < behind; entry++) {
                Index other = component[system.matrix.columns[entry]];
                if (other >= 0 && other != own && of[other] > largest) largest = of[other];
            }
        }
        return largest;
    }
};

// Calls a generic function with the walk in the types that the matrix has.
template <class Function>
auto with_walk(const PgSystem& given, const PgOrder& order, Function function) {
    return with_types(given, [&]<class Matrix>(const System<Matrix>& system) {
        using Column = typename Matrix::ColumnType;
        return function(Walk<Matrix>{
            system, order.components, static_cast<const Column*>(order.found),
            static_cast<const Column*>(order.bounds), static_cast<const Column*>(order.component)});
    });
}

}  // namespace prism_gpu
