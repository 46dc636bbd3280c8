// Colours of Gauss-Seidel: weights, levels, what is fresh, moves to better colours.
//
// The graph comes as a matrix: row u has the updates whose values update u reads, or -1 for states that
// keep theirs. Weights are whole numbers, so that no sum of them depends on its order.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>

#include "matrix.hpp"
#include "team.hpp"

using prism_gpu::Index;
using Number = std::int32_t;  // of an update, a colour or a level
using Weight = std::int32_t;

namespace {

// To nearest, half to even; nothing that 32 bits do not hold is ever written.
Weight rounded(double weight) {
    constexpr double LIMIT = std::numeric_limits<Weight>::max(), SHIFT = 0x1.8p52;
    double clamped = weight < LIMIT ? weight : LIMIT;
    clamped = clamped > -LIMIT ? clamped : -LIMIT;
    return static_cast<Weight>((clamped + SHIFT) - SHIFT);
}

// Calls `see(row, other, entry)` for each entry between two updates, of rows `first` to before `behind`.
template <class Matrix, class See>
void each_read(const Matrix& matrix, Index first, Index behind, See see) {
    for (Index row = first; row < behind; row++) {
        for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) {
            Index other = matrix.columns[entry];
            if (other >= 0 && other != row) see(row, other, entry);
        }
    }
}

}  // namespace

// weights: the values of each row over their sum, in units of 1 / `unit`; 0 for rows of no positive sum.
extern "C" void pg_weigh(
    const PgMatrix* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, double unit,
    Weight* weights) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        prism_gpu::Team(threads).share(pieces, [&](Index piece) {
            for (Index row = bounds[piece]; row < bounds[piece + 1]; row++) {
                double total = 0.0;
                for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) total += matrix.value(entry);
                double factor = total > 0.0 ? unit / total : 0.0;
                for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++)
                    weights[entry] = total > 0.0 ? rounded(matrix.value(entry) * factor) : 0;
            }
        });
    });
}

namespace {

template <bool backwards, class Matrix>
void find_levels(const Matrix& matrix, Number* levels) {
    auto is_before = [](Index one, Index other) { return backwards ? one > other : one < other; };
    for (Index step = 0; step < matrix.rows; step++) {
        Index row = backwards ? matrix.rows - 1 - step : step;
        Number level = levels[row];
        for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) {
            Index other = matrix.columns[entry];
            if (other >= 0 && is_before(other, row)) level = std::max(level, levels[other] + 1);
        }
        levels[row] = level;
        // Later states that this one reads must not be computed before it has read them.
        for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) {
            Index other = matrix.columns[entry];
            if (other >= 0 && is_before(row, other)) levels[other] = std::max(levels[other], level);
        }
    }
}

}  // namespace

// levels: zeros, which become the steps of sequential Gauss-Seidel at which updates are computed.
extern "C" void pg_find_levels(const PgMatrix* given, std::int32_t backwards, Number* levels) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        backwards ? find_levels<true>(matrix, levels) : find_levels<false>(matrix, levels);
    });
}

// sums: shape (pieces, 2), how many entries of each piece are fresh, and how many there are.
extern "C" void pg_fresh_entries(
    const PgMatrix* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads,
    const Number* colours, std::int64_t* sums) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        prism_gpu::Team(threads).share(pieces, [&](Index piece) {
            Index fresh = 0, all = 0;
            each_read(matrix, bounds[piece], bounds[piece + 1], [&](Index row, Index other, Index) {
                all++;
                fresh += colours[other] < colours[row];
            });
            sums[2 * piece] = fresh;
            sums[2 * piece + 1] = all;
        });
    });
}

namespace {

// Some of the colourings of levels, of `stride` all told, side by side for each level.
struct Colourings {
    const Number* of_level;
    Index stride;
};

// Adds the weight of a piece that is fresh by each of `width` colourings to `sums`; returns all its weight.
template <int width, class Matrix>
Index add_fresh_weights(
    const Matrix& matrix, Index first, Index behind, const Weight* weights, const Number* levels,
    Colourings colours, std::int64_t* sums) {
    Index found[width] = {}, all = 0;
    each_read(matrix, first, behind, [&](Index row, Index other, Index entry) {
        const Number* own = colours.of_level + levels[row] * colours.stride;
        const Number* theirs = colours.of_level + levels[other] * colours.stride;
        Index weight = weights[entry];
        for (int which = 0; which < width; which++) found[which] += theirs[which] < own[which] ? weight : 0;
        all += weight;
    });
    for (int which = 0; which < width; which++) sums[which] += found[which];
    return all;
}

constexpr Index MOST_AT_ONCE = 4;

template <class... Arguments>
Index add_fresh_weights(Index width, const Arguments&... arguments) {
    if (width == 1) return add_fresh_weights<1>(arguments...);
    if (width == 2) return add_fresh_weights<2>(arguments...);
    if (width == 3) return add_fresh_weights<3>(arguments...);
    return add_fresh_weights<4>(arguments...);
}

}  // namespace

// colours: shape (levels, tried), some colourings of levels; sums: shape (pieces, tried + 1), zeros, which
// become the weight of each piece that is fresh by each colouring, and all weight.
extern "C" void pg_fresh_weights(
    const PgMatrix* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads,
    const Weight* weights, const Number* levels, const Number* colours, std::int64_t tried, std::int64_t* sums) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        prism_gpu::Team(threads).share(pieces, [&](Index piece) {
            Index* found = sums + piece * (tried + 1);
            for (Index from = 0; from < tried; from += MOST_AT_ONCE) {
                found[tried] = add_fresh_weights(
                    std::min(tried - from, MOST_AT_ONCE), matrix, bounds[piece], bounds[piece + 1], weights, levels,
                    Colourings{colours + from, tried}, found + from);
            }
        });
    });
}

// Updates have their places in `order` for numbers here. places: takes the place of each update; middles:
// zeros, which become where the readers of each begin among its neighbours; starts: zeros, shape
// (updates + 1,), which become where its neighbours begin.
extern "C" void pg_count_neighbours(
    const PgMatrix* given, const Number* order, Number* places, std::int64_t* middles, std::int64_t* starts) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        for (Index place = 0; place < matrix.rows; place++) places[order[place]] = static_cast<Number>(place);
        each_read(matrix, 0, matrix.rows, [&](Index row, Index other, Index) {
            middles[places[row]]++;
            starts[places[other] + 1]++;
        });
        for (Index place = 0; place < matrix.rows; place++) {
            starts[place + 1] += starts[place] + middles[place];
            middles[place] += starts[place];
        }
    });
}

// neighbours, beside: shape (starts[updates],), take the updates that each reads and those that read it, and
// the weights of the entries. cursors, readers: copies of `starts` and `middles`, which are moved on.
extern "C" void pg_list_neighbours(
    const PgMatrix* given, const Weight* weights, const Number* places, std::int64_t* cursors,
    std::int64_t* readers, Number* neighbours, Weight* beside) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        each_read(matrix, 0, matrix.rows, [&](Index row, Index other, Index entry) {
            Number own = places[row], read = places[other];
            Index at = cursors[own]++, back = readers[read]++;
            neighbours[at] = read;
            neighbours[back] = own;
            beside[at] = beside[back] = weights[entry];
        });
    });
}

// `HostMoves` of engines/host/colouring.py.
struct PgMoves {
    const std::int64_t *starts, *middles;  // as `pg_count_neighbours` leaves them
    const Number* neighbours;
    const Weight* weights;
    const Number* order;
    std::uint8_t* awake;  // whether a neighbour has moved since an update looked
    Number* wanted;
    std::int64_t* gains;
    Number* colours;
    std::int64_t* sums;  // shape (threads, count + 1)
    std::int64_t count;  // of colours
};

namespace {

// A pass in which every update may move once: those of one step look at the colours that there are, then
// those move that gain and come before all their neighbours of the same step.
class Pass {
   public:
    Pass(const PgMoves& moves, const Number* keys) : m_(moves), keys_(keys) {}

    void look(Index row, std::int64_t* sums) const {
        m_.gains[row] = 0;
        // Where no neighbour has moved since the last look there is nothing to gain.
        if (!m_.awake[row]) return;
        m_.awake[row] = 0;
        // Nor where all is fresh, as in most rows of a model that goes by its levels.
        if (stale(row) == 0) return;
        // Sums up to colour q are the weight that is fresh if the update has colour q.
        std::fill(sums, sums + m_.count + 1, 0);
        for (Index entry = m_.starts[row]; entry < m_.middles[row]; entry++)
            sums[m_.colours[m_.neighbours[entry]] + 1] += m_.weights[entry];
        for (Index entry = m_.middles[row]; entry < m_.starts[row + 1]; entry++) {
            sums[0] += m_.weights[entry];
            sums[m_.colours[m_.neighbours[entry]]] -= m_.weights[entry];
        }
        Index fresh = 0, best = -1, present = 0;
        Number better = 0;
        for (Index colour = 0; colour < m_.count; colour++) {
            fresh += sums[colour];
            if (colour == m_.colours[row]) present = fresh;
            if (fresh > best) {
                best = fresh;
                better = static_cast<Number>(colour);
            }
        }
        m_.wanted[row] = better;
        m_.gains[row] = best - present;
    }

    void settle(Index row, Number step) const {
        if (m_.gains[row] <= 0) return;
        for (Index entry = m_.starts[row]; entry < m_.starts[row + 1]; entry++) {
            Number other = m_.neighbours[entry];
            if (keys_[other] == step && comes_first(other, row)) {
                wake(row);
                return;
            }
        }
        m_.colours[row] = m_.wanted[row];
        for (Index entry = m_.starts[row]; entry < m_.starts[row + 1]; entry++) wake(m_.neighbours[entry]);
    }

   private:
    Index stale(Index row) const {
        Index weight = 0;
        Number own = m_.colours[row];
        for (Index entry = m_.starts[row]; entry < m_.middles[row]; entry++)
            weight += m_.colours[m_.neighbours[entry]] >= own ? m_.weights[entry] : 0;
        for (Index entry = m_.middles[row]; entry < m_.starts[row + 1]; entry++)
            weight += m_.colours[m_.neighbours[entry]] <= own ? m_.weights[entry] : 0;
        return weight;
    }

    bool comes_first(Index other, Index row) const {
        Index theirs = m_.gains[other], own = m_.gains[row];
        return theirs > own || (theirs == own && m_.order[other] < m_.order[row]);
    }

    // Several threads may wake an update at once.
    void wake(Index row) const { std::atomic_ref(m_.awake[row]).store(1, std::memory_order_relaxed); }

    const PgMoves& m_;
    const Number* keys_;
};

}  // namespace

// Makes a pass. keys: the step of each update; members: the updates by their steps; bounds: where the members
// of each step begin, and the end of the last; pieces: into how many each step is cut.
extern "C" void pg_move(
    const PgMoves* moves, const Number* keys, const Number* members, const std::int64_t* bounds,
    std::int64_t steps, std::int64_t pieces, std::int32_t threads) {
    Pass pass(*moves, keys);
    Index step = -1;
    bool looks = false;
    auto next = [&]() noexcept -> Index {
        looks = !looks;
        if (!looks) return pieces;
        do {
            step++;
        } while (step < steps && bounds[step] == bounds[step + 1]);
        return step < steps ? pieces : -1;
    };
    prism_gpu::in_phases(threads, next(), [&](int me, Index piece) {
        Index size = (bounds[step + 1] - bounds[step] + pieces - 1) / pieces;
        Index first = bounds[step] + piece * size, behind = std::min(first + size, bounds[step + 1]);
        std::int64_t* sums = moves->sums + me * (moves->count + 1);
        for (Index place = first; place < behind; place++) {
            if (looks) pass.look(members[place], sums);
            else pass.settle(members[place], static_cast<Number>(step));
        }
    }, next);
}
