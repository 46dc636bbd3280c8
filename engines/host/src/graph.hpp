// The graph of a model as Python hands it over, and scratch memory of searches.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include "matrix.hpp"

// `HostGraph` of engines/host/graphs.py. Columns have 64 bits where 32 do not number all rows and states.
struct PgGraph {
    PgMatrix matrix;  // its values are null
    std::int64_t states;
    const void* groups;  // of the type of offsets: where each state's rows start; null for a row a state
    void* into_offsets;  // of the type of offsets: where the rows that enter each state start
    void* into_rows;     // of the type of columns: these rows
    void* state_of;      // of the type of columns: the state of each row; null for its number
};

namespace prism_gpu {

template <class Offset, class Column>
struct Graph {
    Index states, rows;
    const Offset* offsets;
    const Column* columns;
    const Offset* groups;
    Offset* into_offsets;
    Column* into_rows;
    Column* state_of;

    Index first_row(Index state) const { return groups ? static_cast<Index>(groups[state]) : state; }
    Index first_edge(Index state) const { return offsets[first_row(state)]; }
    Index owner(Index row) const { return state_of ? static_cast<Index>(state_of[row]) : row; }
};

constexpr std::int64_t NO_MEMORY = -1;

// Calls a generic function, which returns no negative number, with the graph in the types that it has.
template <class Function>
std::int64_t with_types(const PgGraph& graph, Function function) noexcept {
    try {
        return with_types(graph.matrix, [&]<class Offset, class Column>(const Csr<Offset, Column>& matrix) {
            return static_cast<std::int64_t>(function(Graph<Offset, Column>{
                graph.states, matrix.rows, matrix.offsets, matrix.columns, static_cast<const Offset*>(graph.groups),
                static_cast<Offset*>(graph.into_offsets), static_cast<Column*>(graph.into_rows),
                static_cast<Column*>(graph.state_of)}));
        });
    } catch (const std::bad_alloc&) {
        return NO_MEMORY;
    }
}

// Memory without values: what a search does not come to is never touched.
template <class Type>
using Room = std::unique_ptr<Type[]>;

template <class Type>
Room<Type> room(Index size) {
    return std::make_unique_for_overwrite<Type[]>(size);
}

}  // namespace prism_gpu
