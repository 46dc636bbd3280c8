// What upper bounds of expected rewards are made of: a sweep in the order of Dijkstra, and the probability of
// never coming back.
#include <algorithm>
#include <functional>
#include <new>
#include <queue>
#include <tuple>
#include <vector>

#include "matrix.hpp"

using prism_gpu::Index;

namespace {

// A row that a state may choose: the probability that it misses, its cost, and the state. Ties in both go to
// the smaller state.
using Candidate = std::tuple<double, double, Index>;

struct Rows {
    const std::int64_t* owner;
    double* reached;
    double* cost;
};

struct States {
    double* reached;
    double* cost;
    std::int64_t* chosen;
};

// Chooses rows, and settles the states whose rows are the best.
class Dijkstra {
   public:
    Dijkstra(Rows rows, States states, const std::uint8_t* goal, Index count)
        : rows_(rows), states_(states), settled_(goal, goal + count), best_(count) {}

    bool is_settled(Index state) const { return settled_[state]; }

    // Takes a row for its state where it is better than what the state has.
    void offer(Index row) {
        Index state = rows_.owner[row];
        Best offered{1.0 - rows_.reached[row], rows_.cost[row]};
        Best& best = best_[state];
        bool better = offered.missing < best.missing || (offered.missing == best.missing && offered.cost < best.cost);
        if (states_.chosen[state] >= 0 && !better) return;
        best = offered;
        states_.chosen[state] = row;
        queue_.emplace(offered.missing, offered.cost, state);
    }

    // Settles the next state and returns it; -1 where there is none.
    Index settle() {
        while (!queue_.empty()) {
            Index state = std::get<2>(queue_.top());
            queue_.pop();
            if (settled_[state]) continue;
            settled_[state] = 1;
            states_.reached[state] = rows_.reached[states_.chosen[state]];
            states_.cost[state] = rows_.cost[states_.chosen[state]];
            return state;
        }
        return -1;
    }

   private:
    struct Best {
        double missing, cost;
    };

    Rows rows_;
    States states_;
    std::vector<std::uint8_t> settled_;
    std::vector<Best> best_;
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

template <class Matrix>
void dijkstra(const Matrix& into, Rows rows, Index row_count, States states, const std::uint8_t* goal) {
    Dijkstra search(rows, states, goal, into.rows);
    // Rows that enter the goal are all updated before any of them is compared, as one step.
    for (Index state = 0; state < into.rows; state++) {
        if (!goal[state]) continue;
        for (Index e = into.begin(state); e < into.end(state); e++) rows.reached[into.columns[e]] += into.value(e);
    }
    for (Index row = 0; row < row_count; row++)
        if (rows.reached[row] > 0.0 && !search.is_settled(rows.owner[row])) search.offer(row);
    for (Index source = search.settle(); source >= 0; source = search.settle()) {
        for (Index e = into.begin(source); e < into.end(source); e++) {
            Index row = into.columns[e];
            double value = into.value(e);
            if (search.is_settled(rows.owner[row]) || value == 0.0) continue;
            rows.reached[row] += value * states.reached[source];
            rows.cost[row] += value * states.cost[source];
            search.offer(row);
        }
    }
}

// Layers of states whose rows all lead into the layers before; returns the states, layer by layer.
template <class Matrix>
std::vector<Index> layers(
    const Matrix& into, const std::int64_t* owner, Index row_count, const std::uint8_t* goal, std::int64_t* level) {
    std::vector<Index> found;
    found.reserve(into.rows);
    for (Index state = 0; state < into.rows; state++)
        if (goal[state]) found.push_back(state);
    std::vector<std::uint8_t> entered(row_count);
    std::vector<Index> missing(into.rows);
    for (Index row = 0; row < row_count; row++) missing[owner[row]]++;
    for (std::size_t head = 0; head < found.size(); head++) {
        Index source = found[head];
        for (Index e = into.begin(source); e < into.end(source); e++) {
            Index row = into.columns[e], state = owner[row];
            if (entered[row] || into.value(e) == 0.0) continue;
            entered[row] = 1;
            if (--missing[state] == 0) {
                level[state] = level[source] + 1;
                found.push_back(state);
            }
        }
    }
    return found;
}

struct Places {
    const std::int64_t* component;
    const std::int64_t* level;

    bool is_before(Index one, Index other) const { return 0 <= level[one] && level[one] < level[other]; }
};

// The probability that a row leads into an earlier layer, and never back from there.
template <class Matrix>
double leaving(const Matrix& matrix, Index row, Index state, Places places, const double* never) {
    double total = 0.0;
    for (Index e = matrix.begin(row); e < matrix.end(row); e++) {
        Index after = matrix.columns[e];
        if (!places.is_before(after, state)) continue;
        bool again = places.component[after] == places.component[state];
        total += matrix.value(e) * (again ? never[after] : 1.0);
    }
    return total;
}

}  // namespace

// Settles states in the order of the probability, then the cost, of getting to the goal: the Dijkstra sweep of
// McMahan, Likhachev and Gordon (2005). into: the transposed matrix. Returns -1 where there is no memory.
extern "C" std::int32_t pg_dijkstra_sweep(
    const PgMatrix* into, const std::int64_t* owner, std::int64_t rows, const std::uint8_t* goal, double* reached,
    double* cost, std::int64_t* chosen, double* row_reached, double* row_cost) try {
    prism_gpu::with_types(*into, [&](const auto& matrix) {
        dijkstra(matrix, {owner, row_reached, row_cost}, rows, {reached, cost, chosen}, goal);
    });
    return 0;
} catch (const std::bad_alloc&) {
    return -1;
}

// Bounds from below the probability of never coming back to a state, under any strategy: variant 2 of Baier,
// Klein, Leuschner, Parker and Wunderlich (2017). level: 0 at the goal, -1 elsewhere. never: 0. Returns -1
// where there is no memory.
extern "C" std::int32_t pg_probability_of_no_return(
    const PgMatrix* into, const std::int64_t* owner, const std::uint8_t* goal, const std::int64_t* component,
    const PgMatrix* given, const std::int64_t* groups, const std::int64_t* group_of, std::int64_t* level,
    double* never) try {
    auto order = prism_gpu::with_types(
        *into, [&](const auto& matrix) { return layers(matrix, owner, given->rows, goal, level); });
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        for (Index state : order) {
            Index group = group_of[state];
            if (group < 0) continue;
            double least = 1.0;
            for (Index row = groups[group]; row < groups[group + 1]; row++)
                least = std::min(least, leaving(matrix, row, state, {component, level}, never));
            never[state] = least;
        }
    });
    return 0;
} catch (const std::bad_alloc&) {
    return -1;
}
