// Strongly connected components, each after those that it leads to (Tarjan 1972), without recursion.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "wide.hpp"

namespace prism_gpu {

// What number a state has in a search before it is entered, and what the others have, or less.
template <class Number>
constexpr Number WANTED = std::numeric_limits<Number>::max();
constexpr int APART = 0;

// The search from one state after another.
//
// Edges has a type Cursor, begin(state), and next(cursor), the state that the next edge leads to or -1.
// A state that is entered has a number above 0, which falls from one to the next, and one of component k
// has -1 - k: a single look at the number of a successor tells all.
template <class Number, class Edges>
class ComponentSearch {
   public:
    // At most `most` of the numbers are WANTED at a time.
    ComponentSearch(const Edges& edges, Number* number, Index most)
        : edges_(edges), number_(number), open_(new Number[most]), path_(new Frame[most]) {}

    // Begins anew with this many states that are WANTED.
    void restart(Index wanted) {
        next_ = static_cast<Number>(wanted);
        count_ = 0;
    }

    Index count() const { return count_; }

    // Finds the components that a WANTED state reaches; close(first, behind) is told the members of each.
    template <class Close>
    void from(Index root, Close close) {
        Frame* frame = path_.get();
        Frame here = enter(root);
        while (true) {
            Index child = -1;
            for (Index after = edges_.next(here.cursor); after >= 0; after = edges_.next(here.cursor)) {
                Number seen = number_[after];
                if (seen > here.highest) {
                    if (seen == WANTED<Number>) {
                        child = after;
                        break;
                    }
                    here.highest = seen;
                }
            }
            if (child >= 0) {
                *frame++ = here;
                here = enter(child);
                continue;
            }
            if (here.highest == number_[here.state]) leave(here.state, close);
            if (frame == path_.get()) return;
            Number highest = here.highest;
            here = *--frame;
            here.highest = std::max(here.highest, highest);
        }
    }

   private:
    struct Frame {
        Number state, highest;  // the highest number of a state that it reaches
        typename Edges::Cursor cursor;
    };

    Frame enter(Index state) {
        Number own = next_--;
        number_[state] = own;
        open_[top_++] = static_cast<Number>(state);
        return Frame{static_cast<Number>(state), own, edges_.begin(state)};
    }

    template <class Close>
    void leave(Number state, Close close) {
        Index behind = top_;
        do number_[open_[--top_]] = static_cast<Number>(-1 - count_);
        while (open_[top_] != state);
        count_++;
        close(open_.get() + top_, open_.get() + behind);
    }

    const Edges& edges_;
    Number* number_;
    std::unique_ptr<Number[]> open_;  // states whose component is not complete, in the order of entering
    std::unique_ptr<Frame[]> path_;
    Number next_ = 0;
    Index top_ = 0, count_ = 0;
};

// The edges of state s lead to columns[starts[s]] to columns[starts[s + 1] - 1]; the last may come first.
template <class Offset, class Column, bool backwards>
struct StateEdges {
    struct Cursor {
        Offset entry, last;
    };
    const Offset* starts;
    const Column* columns;

    Cursor begin(Index state) const {
        return backwards ? Cursor{starts[state + 1], starts[state]} : Cursor{starts[state], starts[state + 1]};
    }
    Index next(Cursor& at) const {
        if (at.entry == at.last) return -1;
        return backwards ? columns[--at.entry] : columns[at.entry++];
    }
};

constexpr Index FAR = 16;            // numbers that far apart share no line of a cache
constexpr Index PROBED_SHARE = 256;  // one in this many states is entered to compare two orders
constexpr Index MUCH_NEARER = 4;     // how many times fewer far steps make the order worth a change

// How many of the first states that a depth-first search enters are far from the one before.
//
// A search is as fast as the caches let it: among processes that go round, those should go first whose
// steps are short; among processes that come to an end, last. The labels are restored.
template <class Column, class Edges>
Index far_steps(Index size, const Edges& edges, Column* labels) {
    struct Frame {
        Index state;
        typename Edges::Cursor cursor;
    };
    std::vector<Frame> path;
    std::vector<Index> entered;
    Index budget = size / PROBED_SHARE, far = 0, before = 0;
    auto enter = [&](Index state) {
        far += std::abs(state - before) >= FAR;
        before = state;
        labels[state] = APART;
        entered.push_back(state);
        path.push_back({state, edges.begin(state)});
    };
    auto may_enter = [&] { return static_cast<Index>(entered.size()) < budget; };
    for (Index root = 0; root < size && may_enter(); root++) {
        if (labels[root] != WANTED<Column>) continue;
        enter(root);
        while (!path.empty() && may_enter()) {
            Index after = edges.next(path.back().cursor);
            if (after < 0)
                path.pop_back();
            else if (labels[after] == WANTED<Column>)
                enter(after);
        }
        path.clear();
    }
    for (Index state : entered) labels[state] = WANTED<Column>;
    return far;
}

// Labels the WANTED states with components, each after those that it may enter; -1 for those APART.
template <class Offset, class Column>
Index label_components(Index size, const Offset* starts, const Column* columns, Column* labels) {
    auto search_all = [&](const auto& edges) {
        ComponentSearch<Column, std::remove_cvref_t<decltype(edges)>> search(edges, labels, size);
        search.restart(size);
        for (Index root = 0; root < size; root++)
            if (labels[root] == WANTED<Column>) search.from(root, [](auto, auto) {});
        return search.count();
    };
    StateEdges<Offset, Column, false> ahead{starts, columns};
    StateEdges<Offset, Column, true> back{starts, columns};
    bool from_last = MUCH_NEARER * far_steps(size, back, labels) < far_steps(size, ahead, labels);
    Index count = from_last ? search_all(back) : search_all(ahead);
    for (Index state = 0; state < size; state++) labels[state] = -1 - labels[state];
    return count;
}

struct Components {
    std::vector<Index> states;  // component after component
    std::vector<Index> firsts;  // where each begins in `states`, and the end of the last
    std::vector<Index> of;      // the component of each state
};

// successors(edge) is the state that the edge leads to, or -1 for an edge that is none.
template <class Offsets, class Successor>
Components components_of(Index size, const Offsets& offsets, Successor successor) {
    struct Edges {
        struct Cursor {
            Index entry, last;
        };
        const Offsets& offsets;
        Successor& successor;

        Cursor begin(Index state) const {
            return {static_cast<Index>(offsets[state]), static_cast<Index>(offsets[state + 1])};
        }
        Index next(Cursor& at) const {
            while (at.entry < at.last) {
                Index after = successor(at.entry++);
                if (after >= 0) return after;
            }
            return -1;
        }
    };
    Components found;
    found.states.reserve(size);
    found.firsts.push_back(0);
    found.of.assign(size, WANTED<Index>);
    Edges edges{offsets, successor};
    ComponentSearch<Index, Edges> search(edges, found.of.data(), size);
    search.restart(size);
    for (Index root = 0; root < size; root++) {
        if (found.of[root] != WANTED<Index>) continue;
        search.from(root, [&](const Index* first, const Index* behind) {
            while (behind != first) found.states.push_back(*--behind);
            found.firsts.push_back(static_cast<Index>(found.states.size()));
        });
    }
    for (Index& component : found.of) component = -1 - component;
    return found;
}

}  // namespace prism_gpu
