// The flows of a Markov chain, or of one whose states are aggregates of those of another.
#pragma once

#include <cstdint>

// `HostFlows` of engines/host/aggregates.py: row j holds the flows i -> j, i != j, with column i.
struct PgFlows {
    std::int64_t states;
    const std::int32_t* offsets;
    const std::int32_t* columns;
    double* values;
    double* out;  // what leaves each state
};
