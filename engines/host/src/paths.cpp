// Matrices and choices of MDPs found path by path, and values of diagrams at single states.
#include "paths.hpp"
#include "team.hpp"

using prism_gpu::Index;

namespace {

// Tells the rows of a state apart: paths come root by root, so that a row begins where the root changes.
struct Choices {
    std::int32_t* latest;  // the root that each state was met below last, -1 before the first

    bool begins(const PgPlace& at, Index choice) const {
        auto now = static_cast<std::int32_t>(choice);
        if (latest[at.row] == now) return false;
        latest[at.row] = now;
        return true;
    }
};

template <class Offset>
bool fill(
    const PgDiagram& diagram, const std::int32_t* roots, Index num_roots, PgWalk& walk, Index steps, Offset* next,
    std::int32_t* columns, double* values, Choices choices, std::int64_t* next_rows, Offset* offsets,
    std::int32_t* numbers) {
    return prism_gpu::follow(diagram, roots, num_roots, walk, steps, [&](const PgPlace& at, double value) {
        Offset place = next[at.row]++;
        columns[place] = static_cast<std::int32_t>(at.column);
        values[place] = value;
        if (next_rows && choices.begins(at, walk.choice)) {
            Index row = next_rows[at.row]++;
            offsets[row] = place;
            numbers[row] = static_cast<std::int32_t>(walk.choice);
        }
    });
}

// The value at a state of the function that begins with a node; raises `strange` to a node that tests another
// variable than a row's.
double read(const PgDiagram& diagram, std::int32_t node, Index state, Index& strange) {
    auto place = static_cast<std::int32_t>(diagram.numbering_root);
    for (Index level = 0; level < diagram.levels && place >= 0; level++) {
        std::int32_t variable = diagram.variables[node];
        if (variable == prism_gpu::TERMINAL) break;
        Index lower = diagram.low_counts[place];
        bool upper = state >= lower;
        state -= upper ? lower : 0;
        if (variable == diagram.rows[level]) node = upper ? diagram.high[node] : diagram.low[node];
        place = upper ? diagram.numbering_high[place] : diagram.numbering_low[place];
    }
    if (diagram.variables[node] != prism_gpu::TERMINAL) strange = std::max<Index>(strange, node);
    return diagram.values[node];
}

}  // namespace

// Adds up the entries of each state, and its rows where `rows` is not null; see `follow`.
extern "C" std::int32_t pg_count_paths(
    const PgDiagram* diagram, const std::int32_t* roots, std::int64_t num_roots, PgWalk* walk, std::int64_t steps,
    std::int32_t* entries, std::int32_t* rows, std::int32_t* latest) {
    Choices choices{latest};
    return prism_gpu::follow(*diagram, roots, num_roots, *walk, steps, [&](const PgPlace& at, double) {
        entries[at.row]++;
        if (rows && choices.begins(at, walk->choice)) rows[at.row]++;
    });
}

// Writes the entries of each state from `next` on, which is of 64 bits where it is `wide`, and so are
// `offsets`. next_rows, offsets, numbers: of an MDP the next row of each state, where each row starts, and
// which choice it is; else null. See `follow`.
extern "C" std::int32_t pg_fill_paths(
    const PgDiagram* diagram, const std::int32_t* roots, std::int64_t num_roots, PgWalk* walk, std::int64_t steps,
    std::int32_t wide, void* next, std::int32_t* columns, double* values, std::int32_t* latest,
    std::int64_t* next_rows, void* offsets, std::int32_t* numbers) {
    auto run = [&]<class Offset>(Offset* places) {
        return fill(
            *diagram, roots, num_roots, *walk, steps, places, columns, values, Choices{latest}, next_rows,
            static_cast<Offset*>(offsets), numbers);
    };
    return wide ? run(static_cast<std::int64_t*>(next)) : run(static_cast<std::int32_t*>(next));
}

// Reads the function that begins with each root at a state. Returns the last node of those that test a
// variable which is not a row's, or -1.
extern "C" std::int64_t pg_read_points(
    const PgDiagram* diagram, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads,
    const std::int64_t* states, const std::int32_t* roots, double* results) {
    std::atomic<Index> found{-1};
    prism_gpu::Team(threads).share(pieces, [&](Index piece) {
        Index strange = -1;
        for (Index point = bounds[piece]; point < bounds[piece + 1]; point++)
            results[point] = read(*diagram, roots[point], states[point], strange);
        Index before = found;
        while (before < strange && !found.compare_exchange_weak(before, strange)) continue;
    });
    return found;
}
