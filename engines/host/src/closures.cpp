// Least sets of states that are closed under steps of a graph; each edge is looked at a few times at most.
#include <algorithm>
#include <vector>

#include "graph.hpp"

using prism_gpu::Graph;
using prism_gpu::Index;
using prism_gpu::room;
using prism_gpu::Room;

namespace {

using Mask = std::uint8_t;

// The states of a set whose edges are to be looked at.
template <class Column>
class Worklist {
   public:
    explicit Worklist(Index states) : states_(room<Column>(states)) {}

    Worklist(Index states, const Mask* set) : Worklist(states) {
        for (Index state = 0; state < states; state++)
            if (set[state]) push(state);
    }

    void push(Index state) { states_[top_++] = static_cast<Column>(state); }
    bool pop(Index& state) {
        if (top_ == 0) return false;
        state = states_[--top_];
        return true;
    }

   private:
    Room<Column> states_;
    Index top_ = 0;
};

template <class Offset, class Column>
Index close_forwards(const Graph<Offset, Column>& graph, Mask* closed) {
    Worklist<Column> work(graph.states, closed);
    for (Index state; work.pop(state);) {
        Index behind = graph.first_edge(state + 1);
        for (Index entry = graph.first_edge(state); entry < behind; entry++) {
            Index after = graph.columns[entry];
            if (closed[after]) continue;
            closed[after] = 1;
            work.push(after);
        }
    }
    return 0;
}

template <class Offset, class Column>
Index close_some(const Graph<Offset, Column>& graph, const Mask* through, Mask* closed) {
    Worklist<Column> work(graph.states, closed);
    for (Index state; work.pop(state);) {
        for (Index entry = graph.into_offsets[state]; entry < graph.into_offsets[state + 1]; entry++) {
            Index before = graph.owner(graph.into_rows[entry]);
            if (!through[before] || closed[before]) continue;
            closed[before] = 1;
            work.push(before);
        }
    }
    return 0;
}

template <class Offset, class Column>
Index close_all(const Graph<Offset, Column>& graph, const Mask* through, Mask* closed) {
    Worklist<Column> work(graph.states, closed);
    auto entered = std::make_unique<Mask[]>(graph.rows);
    auto missing = room<Column>(graph.states);  // choices that do not lead into the set
    for (Index state = 0; state < graph.states; state++)
        missing[state] = static_cast<Column>(graph.first_row(state + 1) - graph.first_row(state));
    for (Index state; work.pop(state);) {
        for (Index entry = graph.into_offsets[state]; entry < graph.into_offsets[state + 1]; entry++) {
            Index row = graph.into_rows[entry];
            if (entered[row]) continue;
            entered[row] = 1;
            Index before = graph.owner(row);
            if (--missing[before] > 0 || !through[before] || closed[before]) continue;
            closed[before] = 1;
            work.push(before);
        }
    }
    return 0;
}

// Closes a set round by round, each with all states that have a usable row into it, or whose rows are all usable
// and lead into it; returns how many rounds there are until one adds nothing.
template <class Offset, class Column>
Index count_rounds(
    const Graph<Offset, Column>& graph, const Mask* through, const Mask* usable, bool every, Mask* closed) {
    std::vector<Column> round, next;
    for (Index state = 0; state < graph.states; state++)
        if (closed[state]) round.push_back(static_cast<Column>(state));
    auto entered = std::make_unique<Mask[]>(graph.rows);
    auto missing = room<Column>(graph.states);
    for (Index state = 0; state < graph.states; state++)
        missing[state] = every ? static_cast<Column>(graph.first_row(state + 1) - graph.first_row(state)) : 1;
    Index rounds = 1;
    for (;; rounds++) {
        next.clear();
        for (Column state : round) {
            for (Index entry = graph.into_offsets[state]; entry < graph.into_offsets[state + 1]; entry++) {
                Index row = graph.into_rows[entry];
                if (entered[row] || !usable[row]) continue;
                entered[row] = 1;
                Index before = graph.owner(row);
                if (!through[before] || closed[before] || --missing[before] > 0) continue;
                closed[before] = 1;
                next.push_back(static_cast<Column>(before));
            }
        }
        if (next.empty()) return rounds;
        round.swap(next);
    }
}

// Whether each state may reach one of them, as far as that is seen at so many edges: states are looked at in
// order, and those that are left in the opposite order, until all have an edge to one that may.
template <class Offset, class Column>
bool all_may_reach(const Graph<Offset, Column>& graph, Index goal, Index most_edges) {
    auto found = std::make_unique<Mask[]>(graph.states);
    found[goal] = 1;
    Index looked = 0;
    auto leads_on = [&](Index state) {
        Index behind = graph.first_edge(state + 1);
        for (Index entry = graph.first_edge(state); entry < behind; entry++, looked++)
            if (found[graph.columns[entry]]) return true;
        return false;
    };
    std::vector<Column> open, left;
    for (Index state = 0; state < graph.states; state++) {
        if (found[state]) continue;
        if (leads_on(state))
            found[state] = 1;
        else
            open.push_back(static_cast<Column>(state));
    }
    while (!open.empty()) {
        left.clear();
        for (auto state = open.rbegin(); state != open.rend(); ++state) {
            if (leads_on(*state))
                found[*state] = 1;
            else
                left.push_back(*state);
        }
        if (left.size() == open.size() || looked > most_edges) return false;
        open.swap(left);
    }
    return true;
}

// Whether a search in depth from one state comes to another, as far as that is seen at so many states.
template <class Offset, class Column>
bool comes_to(const Graph<Offset, Column>& graph, Index first, Index goal, Index most_states) {
    auto found = std::make_unique<Mask[]>(graph.states);
    std::vector<Column> open{static_cast<Column>(first)};
    found[first] = 1;
    for (Index followed = 0; !open.empty() && !found[goal] && followed < most_states; followed++) {
        Index state = open.back(), behind = graph.first_edge(state + 1);
        open.pop_back();
        for (Index entry = graph.first_edge(state); entry < behind; entry++) {
            Index after = graph.columns[entry];
            if (found[after]) continue;
            found[after] = 1;
            open.push_back(static_cast<Column>(after));
        }
    }
    return found[goal];
}

// Adds to a set of one state all that it reaches. As long as that takes no more looks at states than there are
// edges, they are taken in order, and in the opposite order by turns, so that edges are read as they lie.
template <class Offset, class Column>
Index close_in_order(const Graph<Offset, Column>& graph, Index first, Mask* closed) {
    constexpr Mask FOUND = 1, FOLLOWED = 2;
    Index found = 1, looked = 0, edges = graph.offsets[graph.rows];
    closed[first] = FOUND;
    std::vector<Column> open;
    auto follow = [&](Index state, auto note) {
        closed[state] = FOLLOWED;
        Index behind = graph.first_edge(state + 1);
        for (Index entry = graph.first_edge(state); entry < behind; entry++) {
            Index after = graph.columns[entry];
            if (closed[after]) continue;
            closed[after] = FOUND;
            found++;
            note(after);
        }
    };
    Index before = 0;
    for (bool upwards = true; found > before && found < graph.states && looked <= edges; upwards = !upwards) {
        before = found;
        for (Index at = 0; at < graph.states && found < graph.states; at++) {
            Index state = upwards ? at : graph.states - 1 - at;
            if (closed[state] == FOUND) follow(state, [](Index) {});
        }
        looked += graph.states;
    }
    if (found < graph.states)
        for (Index state = 0; state < graph.states; state++)
            if (closed[state] == FOUND) open.push_back(static_cast<Column>(state));
    while (!open.empty()) {
        Index state = open.back();
        open.pop_back();
        follow(state, [&](Index after) { open.push_back(static_cast<Column>(after)); });
    }
    for (Index state = 0; state < graph.states; state++) closed[state] = closed[state] != 0;
    return 0;
}

// End components as lists of states; a state outside of them is a list of its own.
template <class Column>
struct Members {
    Room<Column> leader, following;  // the first of a state's list, and the next one or -1

    Members(Index states, const Column* labels, Index count)
        : leader(room<Column>(states)), following(room<Column>(states)) {
        auto heads = room<Column>(count);
        std::fill_n(heads.get(), count, Column(-1));
        for (Index state = 0; state < states; state++) {
            leader[state] = static_cast<Column>(state);
            following[state] = -1;
            if (labels[state] < 0) continue;
            Column& head = heads[labels[state]];
            if (head < 0) {
                head = static_cast<Column>(state);
                continue;
            }
            leader[state] = head;
            following[state] = following[head];
            following[head] = static_cast<Column>(state);
        }
    }
};

template <class Offset, class Column>
Index drop_failing(
    const Graph<Offset, Column>& graph, const Mask* goal, const Column* labels, Index count, Mask* inner, Mask* kept) {
    Members<Column> members(graph.states, labels, count);
    auto exits = std::make_unique<Column[]>(graph.states);
    for (Index row = 0; row < graph.rows; row++)
        if (!inner[row] && graph.offsets[row] < graph.offsets[row + 1]) exits[members.leader[graph.owner(row)]]++;
    Worklist<Column> work(graph.states);
    for (Index state = 0; state < graph.states; state++) {
        if (kept[state] && !goal[state] && exits[members.leader[state]] == 0) kept[state] = 0;
        if (!kept[state]) work.push(state);
    }
    for (Index state; work.pop(state);) {
        for (Index entry = graph.into_offsets[state]; entry < graph.into_offsets[state + 1]; entry++) {
            Index row = graph.into_rows[entry];
            if (inner[row]) continue;
            inner[row] = 1;
            Index member = members.leader[graph.owner(row)];
            if (--exits[member] > 0 || !kept[member] || goal[member]) continue;
            for (; member >= 0; member = members.following[member]) {
                kept[member] = 0;
                work.push(member);
            }
        }
    }
    return 0;
}

}  // namespace

// Fills in the graph's edges backwards: a counting sort of the rows by where they lead.
extern "C" std::int64_t pg_fill_backwards(const PgGraph* given) {
    return prism_gpu::with_types(*given, []<class Offset, class Column>(const Graph<Offset, Column>& graph) {
        Index states = graph.states, edges = graph.offsets[graph.rows];
        Offset* starts = graph.into_offsets;
        std::fill_n(starts, states + 1, Offset(0));
        for (Index entry = 0; entry < edges; entry++) starts[graph.columns[entry]]++;
        for (Index state = 0; state < states; state++) starts[state + 1] += starts[state];
        // From the last on, so that what are ends become starts and the rows ascend.
        for (Index row = graph.rows - 1; row >= 0; row--)
            for (Index entry = graph.offsets[row]; entry < static_cast<Index>(graph.offsets[row + 1]); entry++)
                graph.into_rows[--starts[graph.columns[entry]]] = static_cast<Column>(row);
        for (Index state = 0; graph.state_of && state < states; state++)
            for (Index row = graph.first_row(state); row < graph.first_row(state + 1); row++)
                graph.state_of[row] = static_cast<Column>(state);
        return 0;
    });
}

// Adds to a set the states that it reaches.
extern "C" std::int64_t pg_close_forwards(const PgGraph* given, Mask* closed) {
    return prism_gpu::with_types(*given, [&](const auto& graph) { return close_forwards(graph, closed); });
}

// Whether each state may reach one of them; 0 also where that is not seen at so many edges.
extern "C" std::int64_t pg_all_may_reach(const PgGraph* given, std::int64_t goal, std::int64_t most_edges) {
    return prism_gpu::with_types(*given, [&](const auto& graph) { return all_may_reach(graph, goal, most_edges); });
}

// Whether one state reaches another; 0 also where that is not seen at so many states.
extern "C" std::int64_t pg_comes_to(
    const PgGraph* given, std::int64_t first, std::int64_t goal, std::int64_t most_states) {
    return prism_gpu::with_types(*given, [&](const auto& graph) { return comes_to(graph, first, goal, most_states); });
}

// Adds to an empty set a state and all that it reaches.
extern "C" std::int64_t pg_close_in_order(const PgGraph* given, std::int64_t first, Mask* closed) {
    return prism_gpu::with_types(*given, [&](const auto& graph) { return close_in_order(graph, first, closed); });
}

// Adds to a set the states of `through` of which some row may enter it.
extern "C" std::int64_t pg_close_some(const PgGraph* given, const Mask* through, Mask* closed) {
    return prism_gpu::with_types(*given, [&](const auto& graph) { return close_some(graph, through, closed); });
}

// Adds to a set the states of `through` of which every row may enter it, one at least.
extern "C" std::int64_t pg_close_all(const PgGraph* given, const Mask* through, Mask* closed) {
    return prism_gpu::with_types(*given, [&](const auto& graph) { return close_all(graph, through, closed); });
}

// Closes a set as `pg_close_some`, or as `pg_close_all`, by usable rows alone; returns the rounds that this takes.
extern "C" std::int64_t pg_count_rounds(
    const PgGraph* given, const Mask* through, const Mask* usable, std::int64_t every, Mask* closed) {
    return prism_gpu::with_types(
        *given, [&](const auto& graph) { return count_rounds(graph, through, usable, every != 0, closed); });
}

// Drops from the set `kept` each end component, or state of none, whose other rows all may leave the set.
//
// The goal stays. labels, of the type of columns, are -1 or less than count; inner, one a row: those of the
// components; it is overwritten.
extern "C" std::int64_t pg_drop_failing(
    const PgGraph* given, const Mask* goal, const void* labels, std::int64_t count, Mask* inner, Mask* kept) {
    return prism_gpu::with_types(*given, [&]<class Offset, class Column>(const Graph<Offset, Column>& graph) {
        return drop_failing(graph, goal, static_cast<const Column*>(labels), count, inner, kept);
    });
}
