// A decision diagram and the numbering of its states, and walks along the paths of a matrix.
#pragma once

#include <algorithm>

#include "matrix.hpp"

// `HostDiagram` of engines/host/blocks.py. A node of the numbering below 0 has no states.
struct PgDiagram {
    const std::int32_t *variables, *low, *high;
    const double* values;
    const std::int32_t *numbering_low, *numbering_high;
    const std::int64_t* low_counts;
    const std::int32_t *rows, *columns;  // the variables of each level
    std::int64_t numbering_root, levels;
};

// Where a path stands: a node of the diagram, those of the numbering that its rows and columns have reached,
// and the first row and column below.
struct PgPlace {
    std::int32_t node, row_node, column_node, depth;
    std::int64_t row, column;
};

// `HostWalk` of engines/host/blocks.py.
struct PgWalk {
    PgPlace* stack;         // on the way down each level leaves up to three of four children behind
    std::int64_t height;
    std::int64_t choice;    // the root that is followed, -1 before the first
    std::int64_t found;     // entries so far
    std::int64_t strange;   // a node that tests a variable of none of the levels, or -1
};

namespace prism_gpu {

constexpr std::int32_t TERMINAL = 0x7FFFFFFF;

// Puts what lies below a place on the stack; returns a node that tests another variable, or -1.
inline Index push_below(const PgDiagram& diagram, const PgPlace& at, PgPlace* stack, std::int64_t& height) {
    const std::int32_t *variables = diagram.variables, *low = diagram.low, *high = diagram.high;
    const bool rows_first = diagram.rows[at.depth] < diagram.columns[at.depth];
    const std::int32_t upper = std::min(diagram.rows[at.depth], diagram.columns[at.depth]);
    const std::int32_t lower = std::max(diagram.rows[at.depth], diagram.columns[at.depth]);
    if (variables[at.node] < upper) return at.node;
    const bool halves = variables[at.node] == upper;
    const std::int32_t row_nodes[] = {diagram.numbering_low[at.row_node], diagram.numbering_high[at.row_node]};
    const std::int32_t column_nodes[] = {
        diagram.numbering_low[at.column_node], diagram.numbering_high[at.column_node]};
    const std::int64_t rows[] = {at.row, at.row + diagram.low_counts[at.row_node]};
    const std::int64_t columns[] = {at.column, at.column + diagram.low_counts[at.column_node]};
    // The last one pushed is the first one followed: in each row columns have to ascend.
    for (int first = 1; first >= 0; first--) {
        const std::int32_t half = !halves ? at.node : first ? high[at.node] : low[at.node];
        if (half == 0) continue;
        if (variables[half] < lower) return half;
        const bool quarters = variables[half] == lower;
        for (int second = 1; second >= 0; second--) {
            const std::int32_t quarter = !quarters ? half : second ? high[half] : low[half];
            const int row_bit = rows_first ? first : second, column_bit = rows_first ? second : first;
            if (quarter == 0 || row_nodes[row_bit] < 0 || column_nodes[column_bit] < 0) continue;
            stack[height++] = {
                quarter, row_nodes[row_bit], column_nodes[column_bit], at.depth + 1, rows[row_bit],
                columns[column_bit]};
        }
    }
    return -1;
}

// Follows the paths below one root after the other, depth first, and calls `meet(place, value)` at the end of
// each that is not zero. Returns whether it is through: it stops after so many steps, too, to be called again.
template <class Meet>
bool follow(
    const PgDiagram diagram, const std::int32_t* roots, Index num_roots, PgWalk& walk, Index steps, Meet meet) {
    const auto numbering_root = static_cast<std::int32_t>(diagram.numbering_root);
    PgPlace* const stack = walk.stack;
    std::int64_t height = walk.height;
    while (true) {
        while (height == 0) {
            if (++walk.choice == num_roots) return true;
            std::int32_t root = roots[walk.choice];
            if (root != 0) stack[height++] = {root, numbering_root, numbering_root, 0, 0, 0};
        }
        if (steps-- == 0) {
            walk.height = height;
            return false;
        }
        const PgPlace at = stack[--height];
        Index strange = -1;
        if (at.depth < diagram.levels) {
            strange = push_below(diagram, at, stack, height);
        } else if (diagram.variables[at.node] != TERMINAL) {
            strange = at.node;
        } else {
            walk.found++;
            meet(at, diagram.values[at.node]);
        }
        if (strange >= 0) {
            walk.strange = strange;
            return true;
        }
    }
}

}  // namespace prism_gpu
