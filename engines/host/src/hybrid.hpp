// Matrices as shared blocks and a list of where they lie, as Python hands them over.
#pragma once

#include <algorithm>

#include "matrix.hpp"

// `HostHybrid` of engines/host/hybrid.py, whose arrays are those of engines/diagrams/hybrid.py.
struct PgHybrid {
    std::int64_t strips;
    const std::int64_t* strip_states;   // the first state of each strip, and the number of states
    const std::int64_t* strip_jobs;     // the first job of each strip, and the number of jobs
    const std::int64_t* job_rows;       // the first local row of each job's block
    const std::int64_t* job_columns;    // the first column of each job's block
    const std::int64_t* local_offsets;  // where the entries of each local row start, and the end
    const std::int32_t* local_columns;  // columns less the block's first
    const double* local_values;
};

namespace prism_gpu {

inline Index strip_of(const PgHybrid& hybrid, Index state) {
    const std::int64_t* begin = hybrid.strip_states;
    return std::upper_bound(begin, begin + hybrid.strips, state) - begin - 1;
}

// The next strip, from one on, that has states before its end and ends behind this one.
inline Index strip_from(const PgHybrid& hybrid, Index strip, Index state) {
    while (hybrid.strip_states[strip + 1] <= state) strip++;
    return strip;
}

// Calls `see(column, value)` for each entry of a state of a strip.
template <class See>
void for_entries(const PgHybrid& hybrid, Index strip, Index state, See see) {
    const Index local = state - hybrid.strip_states[strip], behind = hybrid.strip_jobs[strip + 1];
    for (Index job = hybrid.strip_jobs[strip]; job < behind; job++) {
        const Index place = hybrid.job_rows[job] + local, first = hybrid.job_columns[job];
        const Index end = hybrid.local_offsets[place + 1];
        for (Index entry = hybrid.local_offsets[place]; entry < end; entry++)
            see(first + hybrid.local_columns[entry], hybrid.local_values[entry]);
    }
}

}  // namespace prism_gpu
