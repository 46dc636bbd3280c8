// Rows, and choices of MDPs, copied out of a matrix of shared blocks.
#include <algorithm>

#include "matrix.hpp"
#include "team.hpp"

using prism_gpu::Index;

// `HostBlocks` of engines/host/blocks.py; see engines/diagrams/hybrid.py.
struct PgBlocks {
    std::int64_t strips;
    const std::int64_t *strip_states, *strip_jobs;
    const std::int32_t* job_blocks;
    const std::int64_t* job_columns;
    const std::int32_t* job_choices;
    const std::int64_t *block_rows, *local_offsets;
    const std::int32_t* local_columns;
    const double* local_values;
};

namespace {

// The entries of one job in one row.
struct Part {
    Index begin, end;
};

Part part_of(const PgBlocks& blocks, Index job, Index row) {
    Index place = blocks.block_rows[blocks.job_blocks[job]] + row;
    return {blocks.local_offsets[place], blocks.local_offsets[place + 1]};
}

// Calls `visit(state, row in the strip, first job, end of the jobs)` for each state of a piece.
template <class Visit>
void each_state(const PgBlocks& blocks, Index state, Index last, Visit visit) {
    const std::int64_t* begins = blocks.strip_states;
    Index strip = std::upper_bound(begins, begins + blocks.strips + 1, state) - begins - 1;
    for (; state < last; strip++) {
        Index end = std::min<Index>(last, begins[strip + 1]);
        for (; state < end; state++)
            visit(state, state - begins[strip], blocks.strip_jobs[strip], blocks.strip_jobs[strip + 1]);
    }
}

// Appends the entries of a part to those before `entry`; returns where they end.
Index append(const PgBlocks& blocks, Index job, Part part, Index entry, std::int32_t* columns, double* values) {
    auto first = static_cast<std::int32_t>(blocks.job_columns[job]);
    for (Index local = part.begin; local < part.end; local++, entry++) {
        columns[entry] = first + blocks.local_columns[local];
        values[entry] = blocks.local_values[local];
    }
    return entry;
}

// Writes the entries of a piece's states from `entry` on, and where each of its rows starts from `row` on:
// rows are states, or with `choices` the choices of each.
template <bool choices, class Offset>
void copy(
    const PgBlocks& blocks, Index first, Index last, Index entry, Index row, Offset* offsets, std::int32_t* numbers,
    std::int32_t* columns, double* values) {
    each_state(blocks, first, last, [&](Index, Index local, Index job, Index behind) {
        if constexpr (!choices) offsets[row++] = static_cast<Offset>(entry);
        for (std::int32_t latest = -1; job < behind; job++) {
            Part part = part_of(blocks, job, local);
            if constexpr (choices) {
                if (part.begin < part.end && blocks.job_choices[job] != latest) {
                    numbers[row] = latest = blocks.job_choices[job];
                    offsets[row++] = static_cast<Offset>(entry);
                }
            }
            entry = append(blocks, job, part, entry, columns, values);
        }
    });
}

}  // namespace

// Counts the choices of each state, and the entries of each piece of states.
extern "C" void pg_count_choices(
    const PgBlocks* blocks, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads,
    std::int32_t* counts, std::int64_t* entries) {
    prism_gpu::Team(threads).share(pieces, [&](Index piece) {
        Index total = 0;
        each_state(*blocks, bounds[piece], bounds[piece + 1], [&](Index state, Index local, Index job, Index behind) {
            std::int32_t found = 0, latest = -1;
            for (; job < behind; job++) {
                Part part = part_of(*blocks, job, local);
                total += part.end - part.begin;
                if (part.begin < part.end && blocks->job_choices[job] != latest) {
                    latest = blocks->job_choices[job];
                    found++;
                }
            }
            counts[state] = found;
        });
        entries[piece] = total;
    });
}

// Copies the states of each piece: its entries from `starts` on, and its rows, which are states, or of an MDP
// choices, from `rows` on. offsets: where each row starts, of 64 bits where it is `wide`. numbers: which choice
// each row is, if they are choices.
extern "C" void pg_copy_blocks(
    const PgBlocks* blocks, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads,
    const std::int64_t* starts, const std::int64_t* rows, std::int32_t choices, std::int32_t wide, void* offsets,
    std::int32_t* numbers, std::int32_t* columns, double* values) {
    auto run = [&]<class Offset>(Offset* made) {
        prism_gpu::Team(threads).share(pieces, [&](Index piece) {
            auto write = choices ? copy<true, Offset> : copy<false, Offset>;
            write(
                *blocks, bounds[piece], bounds[piece + 1], starts[piece], rows[piece], made, numbers, columns, values);
        });
    };
    if (wide) run(static_cast<std::int64_t*>(offsets));
    else run(static_cast<std::int32_t*>(offsets));
}
