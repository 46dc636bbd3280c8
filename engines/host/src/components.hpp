// Strongly connected components, each after those that it leads to (Tarjan 1972), without recursion.
#pragma once

#include <algorithm>
#include <vector>

#include "wide.hpp"

namespace prism_gpu {

struct Components {
    std::vector<Index> states;  // component after component
    std::vector<Index> firsts;  // where each begins in `states`, and the end of the last
    std::vector<Index> of;      // the component of each state
};

// successors(state, edge) is the state that the edge leads to, or -1 for an edge that is none.
template <class Offsets, class Successor>
Components components_of(Index size, const Offsets& offsets, Successor successor) {
    Components found;
    found.states.reserve(size);
    found.firsts.push_back(0);
    found.of.assign(size, -1);
    std::vector<Index> number(size, -1), lowest(size), edge(size), stack, path;
    Index numbered = 0;
    for (Index root = 0; root < size; root++) {
        if (number[root] >= 0) continue;
        path.push_back(root);
        while (!path.empty()) {
            Index state = path.back();
            if (number[state] < 0) {
                number[state] = lowest[state] = numbered++;
                edge[state] = offsets[state];
                stack.push_back(state);
            }
            bool descends = false;
            while (edge[state] < static_cast<Index>(offsets[state + 1])) {
                Index next = successor(edge[state]);
                if (next >= 0 && number[next] < 0) {
                    path.push_back(next);
                    descends = true;
                    break;
                }
                if (next >= 0 && found.of[next] < 0) lowest[state] = std::min(lowest[state], lowest[next]);
                edge[state]++;
            }
            if (descends) continue;
            path.pop_back();
            if (lowest[state] < number[state]) continue;
            Index member;
            do {
                member = stack.back();
                stack.pop_back();
                found.of[member] = static_cast<Index>(found.firsts.size()) - 1;
                found.states.push_back(member);
            } while (member != state);
            found.firsts.push_back(static_cast<Index>(found.states.size()));
        }
    }
    return found;
}

}  // namespace prism_gpu
