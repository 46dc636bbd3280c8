// Strongly connected components of a graph, and the order of what they lead to.
#include "components.hpp"

#include "edges.hpp"

using prism_gpu::Graph;
using prism_gpu::Index;
using prism_gpu::APART;
using prism_gpu::room;
using prism_gpu::Room;
using prism_gpu::WANTED;

namespace {

using Mask = std::uint8_t;

// The states by component, members[bounds[k]] to members[bounds[k + 1] - 1], without those of none.
template <class Column>
struct Sorted {
    Room<Column> bounds, members;

    Sorted(Index states, const Column* labels, Index count)
        : bounds(std::make_unique<Column[]>(count + 1)), members(room<Column>(states)) {
        for (Index state = 0; state < states; state++)
            if (labels[state] >= 0) bounds[labels[state]]++;
        for (Index component = 0; component < count; component++) bounds[component + 1] += bounds[component];
        for (Index state = states - 1; state >= 0; state--)
            if (labels[state] >= 0) members[--bounds[labels[state]]] = static_cast<Column>(state);
    }
};

// Writes how many components follow each other from each on at most, itself left out; returns how many
// levels that makes. Kahn (1962), from the components that lead to no other.
template <class Offset, class Column>
Index find_levels(const Graph<Offset, Column>& graph, const Column* labels, Index count, Column* levels) {
    Sorted<Column> sorted(graph.states, labels, count);
    auto waiting = std::make_unique<Offset[]>(count);  // edges to components without a level
    auto ready = room<Column>(count);
    for (Index state = 0; state < graph.states; state++) {
        Column own = labels[state];
        if (own < 0) continue;
        Index behind = graph.first_edge(state + 1);
        for (Index entry = graph.first_edge(state); entry < behind; entry++) {
            Column other = labels[graph.columns[entry]];
            waiting[own] += other >= 0 && other != own;
        }
    }
    Index top = 0;
    Column number = 0;
    for (Index component = 0; component < count; component++) {
        levels[component] = 0;
        if (waiting[component] == 0) ready[top++] = static_cast<Column>(component);
    }
    while (top) {
        Column own = ready[--top], above = levels[own] + 1;
        number = std::max(number, above);
        for (Index at = sorted.bounds[own]; at < static_cast<Index>(sorted.bounds[own + 1]); at++) {
            Index state = sorted.members[at];
            for (Index entry = graph.into_offsets[state]; entry < graph.into_offsets[state + 1]; entry++) {
                Column other = labels[graph.owner(graph.into_rows[entry])];
                if (other < 0 || other == own) continue;
                levels[other] = std::max(levels[other], above);
                if (--waiting[other] == 0) ready[top++] = other;
            }
        }
    }
    return number;
}

}  // namespace

// Labels the states of a mask with their components, numbered by their smallest states, and -1 the others;
// returns how many components there are. labels: of the type of columns.
extern "C" std::int64_t pg_strong_components(const PgGraph* given, const Mask* restrict, void* labels) {
    return prism_gpu::with_types(*given, [&]<class Offset, class Column>(const Graph<Offset, Column>& graph) {
        auto found = static_cast<Column*>(labels);
        for (Index state = 0; state < graph.states; state++) found[state] = restrict[state] ? WANTED<Column> : APART;
        prism_gpu::StateStarts<Offset, Column> starts(graph);
        Index count = prism_gpu::label_components(graph.states, starts.first, graph.columns, found);
        return prism_gpu::renumber(graph.states, found, count);
    });
}

// Lists the states of a mask component by component, each after those that it may enter; returns how many
// there are. found and bounds, one a state and one more: of the type of columns; component k is
// found[bounds[k]] to found[bounds[k + 1] - 1].
extern "C" std::int64_t pg_ordered_components(
    const PgGraph* given, const Mask* restrict, const Mask* usable, void* found, void* bounds) {
    return prism_gpu::with_types(*given, [&]<class Offset, class Column>(const Graph<Offset, Column>& graph) {
        auto number = room<Column>(graph.states);
        for (Index state = 0; state < graph.states; state++)
            number[state] = restrict[state] ? WANTED<Column> : APART;
        prism_gpu::UsableEdges<Offset, Column> edges{graph, usable};
        prism_gpu::ComponentSearch<Column, decltype(edges)> search(edges, number.get(), graph.states);
        search.restart(graph.states);
        auto member = static_cast<Column*>(found), bound = static_cast<Column*>(bounds);
        Index size = 0;
        bound[0] = 0;
        for (Index root = 0; root < graph.states; root++) {
            if (number[root] != WANTED<Column>) continue;
            search.from(root, [&](const Column* first, const Column* behind) {
                while (behind != first) member[size++] = *--behind;
                bound[search.count()] = static_cast<Column>(size);
            });
        }
        return search.count();
    });
}

// Marks the components that an edge leaves. labels: of the type of columns, -1 or a component.
extern "C" std::int64_t pg_components_left(const PgGraph* given, const void* labels, Mask* left) {
    return prism_gpu::with_types(*given, [&]<class Offset, class Column>(const Graph<Offset, Column>& graph) {
        auto of = static_cast<const Column*>(labels);
        for (Index state = 0; state < graph.states; state++) {
            Column own = of[state];
            if (own < 0 || left[own]) continue;
            Index entry = graph.first_edge(state), behind = graph.first_edge(state + 1);
            while (entry < behind && of[graph.columns[entry]] == own) entry++;
            left[own] = entry < behind;
        }
        return 0;
    });
}

// Lists the components by how many follow each other from each on, then by number.
//
// labels and order: of the type of columns; the components have no cycles among them.
extern "C" std::int64_t pg_condensation_order(
    const PgGraph* given, const void* labels, std::int64_t count, void* order) {
    return prism_gpu::with_types(*given, [&]<class Offset, class Column>(const Graph<Offset, Column>& graph) {
        auto levels = room<Column>(count);
        Index number = find_levels(graph, static_cast<const Column*>(labels), count, levels.get());
        Sorted<Column> sorted(count, levels.get(), number);
        std::copy_n(sorted.members.get(), count, static_cast<Column*>(order));
        return 0;
    });
}
