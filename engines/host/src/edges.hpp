// The edges of a graph as searches for components take them, and the names of components.
#pragma once

#include <algorithm>

#include "components.hpp"
#include "graph.hpp"

namespace prism_gpu {

// Where the edges of each state start, those of all its rows: shape (states + 1,).
template <class Offset, class Column>
struct StateStarts {
    Room<Offset> own;
    const Offset* first;

    explicit StateStarts(const Graph<Offset, Column>& graph) : first(graph.offsets) {
        if (!graph.groups) return;
        own = room<Offset>(graph.states + 1);
        for (Index state = 0; state <= graph.states; state++) own[state] = graph.offsets[graph.groups[state]];
        first = own.get();
    }
};

// The edges of usable rows.
template <class Offset, class Column>
struct UsableEdges {
    struct Cursor {
        Offset entry, stop;         // of the row
        Offset next_row, last_row;  // rows of the state that are yet to come
    };
    const Graph<Offset, Column>& graph;
    const std::uint8_t* usable;

    Cursor begin(Index state) const {
        return {0, 0, static_cast<Offset>(graph.first_row(state)), static_cast<Offset>(graph.first_row(state + 1))};
    }
    Index next(Cursor& at) const {
        while (at.entry == at.stop) {
            if (at.next_row == at.last_row) return -1;
            Index row = at.next_row++;
            if (!usable[row]) continue;
            at.entry = graph.offsets[row];
            at.stop = graph.offsets[row + 1];
        }
        return graph.columns[at.entry++];
    }
};

// Numbers the labels from 0 on by their smallest states; those below 0 stay. Returns how many there are.
template <class Column>
Index renumber(Index states, Column* labels, Index most) {
    auto names = room<Column>(most);
    std::fill_n(names.get(), most, Column(-1));
    Column count = 0;
    for (Index state = 0; state < states; state++) {
        if (labels[state] < 0) continue;
        Column& name = names[labels[state]];
        if (name < 0) name = count++;
        labels[state] = name;
    }
    return count;
}

}  // namespace prism_gpu
