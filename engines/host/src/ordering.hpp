// In which order the states of one strongly connected component are eliminated.
//
// Minimum degree on the graph of the symmetrised pattern (George and Liu 1989), as a quotient graph
// with approximate degrees, element absorption, mass elimination and indistinguishable states
// (Amestoy, Davis, Duff 1996: An approximate minimum degree ordering algorithm).
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "wide.hpp"

namespace prism_gpu {

using Lists = std::vector<std::vector<Index>>;

// What elimination in an order costs at most.
struct Cost {
    double entries = 0.0;     // of one triangular factor
    double operations = 0.0;  // multiplications
};

class MinimumDegree {
public:
    // neighbours: of each state, both ways, without itself and without repetition.
    // Gives up, and says so in `fits`, once the cost is above the limit.
    MinimumDegree(Lists neighbours, const Cost& limit)
        : size_(static_cast<Index>(neighbours.size())), limit_(limit), states_(std::move(neighbours)),
          elements_(size_), members_(size_), weight_(size_, 1), degree_(size_), mark_(size_, 0),
          outside_(size_, -1), heads_(size_ + 1, -1), next_(size_, -1), previous_(size_, -1),
          merged_(size_), kind_(size_, State) {
        for (Index state = 0; state < size_; state++) {
            degree_[state] = static_cast<Index>(states_[state].size());
            enqueue(state);
        }
        run();
    }

    std::vector<Index> order;
    Cost cost;
    bool fits = true;

private:
    enum Kind : char { State, Element, Gone };

    void enqueue(Index state) {
        Index& head = heads_[degree_[state]];
        next_[state] = head;
        previous_[state] = -1;
        if (head >= 0) previous_[head] = state;
        head = state;
        least_ = std::min(least_, degree_[state]);
    }

    void dequeue(Index state) {
        if (next_[state] >= 0) previous_[next_[state]] = previous_[state];
        if (previous_[state] >= 0) next_[previous_[state]] = next_[state];
        else heads_[degree_[state]] = next_[state];
    }

    void run() {
        order.reserve(size_);
        while (static_cast<Index>(order.size()) < size_ && fits) {
            while (heads_[least_] < 0) least_++;
            eliminate(heads_[least_]);
        }
    }

    // The state, and those that were merged into it, come next in the order.
    void emit(Index state) {
        std::vector<Index> open{state};
        while (!open.empty()) {
            Index one = open.back();
            open.pop_back();
            order.push_back(one);
            open.insert(open.end(), merged_[one].begin(), merged_[one].end());
        }
    }

    // Makes the pivot an element: its members are the states that it is adjacent to.
    void eliminate(Index pivot) {
        dequeue(pivot);
        std::vector<Index> front = front_of(pivot);
        Index width = 0;
        for (Index state : front) width += weight_[state];
        Index pivots = weight_[pivot];
        kind_[pivot] = Element;
        emit(pivot);
        measure_outside(front);
        for (Index state : front) update_lists(pivot, state);
        // States that only the front is adjacent to are eliminated with the pivot: no more fill.
        std::vector<Index> left;
        for (Index state : front) {
            bool mass = states_[state].empty() && elements_[state].size() == 1;
            if (!mass) {
                left.push_back(state);
                continue;
            }
            dequeue(state);
            pivots += weight_[state];
            width -= weight_[state];
            kind_[state] = Gone;
            emit(state);
        }
        merge_alike(left);
        members_[pivot].clear();
        for (Index state : left) {
            if (kind_[state] == State) members_[pivot].push_back(state);
        }
        update_degrees(pivot, width);
        count(static_cast<double>(pivots), static_cast<double>(width));
    }

    std::vector<Index> front_of(Index pivot) {
        std::vector<Index> front;
        stamp_++;
        mark_[pivot] = stamp_;
        auto take = [&](Index state) {
            if (kind_[state] != State || mark_[state] == stamp_) return;
            mark_[state] = stamp_;
            front.push_back(state);
        };
        for (Index state : states_[pivot]) take(state);
        for (Index element : elements_[pivot]) {
            if (kind_[element] != Element) continue;
            for (Index state : members_[element]) take(state);
            kind_[element] = Gone;
            members_[element] = {};
        }
        states_[pivot] = {};
        elements_[pivot] = {};
        return front;
    }

    // outside_[e] becomes the weight of the members of e that are not in the front.
    void measure_outside(const std::vector<Index>& front) {
        touched_.clear();
        for (Index state : front) {
            for (Index element : elements_[state]) {
                if (kind_[element] != Element) continue;
                if (outside_[element] < 0) {
                    outside_[element] = 0;
                    for (Index member : members_[element]) {
                        if (kind_[member] == State) outside_[element] += weight_[member];
                    }
                    touched_.push_back(element);
                }
                outside_[element] -= weight_[state];
            }
        }
        for (Index element : touched_) {
            if (outside_[element] == 0) {  // all of it is in the new element
                kind_[element] = Gone;
                members_[element] = {};
            }
        }
    }

    // A state of the front keeps the neighbours that the front does not hold.
    void update_lists(Index pivot, Index state) {
        auto& near = states_[state];
        near.erase(std::remove_if(near.begin(), near.end(),
                                  [&](Index other) { return kind_[other] != State || mark_[other] == stamp_; }),
                   near.end());
        auto& of = elements_[state];
        of.erase(std::remove_if(of.begin(), of.end(), [&](Index element) { return kind_[element] != Element; }),
                 of.end());
        of.push_back(pivot);
    }

    // States with the same neighbours are one from here on.
    void merge_alike(const std::vector<Index>& front) {
        std::vector<std::pair<Index, Index>> hashed;
        for (Index state : front) {
            Index sum = 0;
            for (Index other : states_[state]) sum += other;
            for (Index element : elements_[state]) sum += element;
            hashed.emplace_back(sum, state);
        }
        std::sort(hashed.begin(), hashed.end());
        for (std::size_t one = 0; one < hashed.size(); one++) {
            Index kept = hashed[one].second;
            if (kind_[kept] != State) continue;
            Index stamp = 0;
            for (std::size_t two = one + 1; two < hashed.size() && hashed[two].first == hashed[one].first; two++) {
                Index other = hashed[two].second;
                if (kind_[other] != State || states_[other].size() != states_[kept].size() ||
                    elements_[other].size() != elements_[kept].size())
                    continue;
                if (stamp == 0) {
                    stamp = ++stamp_;
                    for (Index state : states_[kept]) mark_[state] = stamp;
                    for (Index element : elements_[kept]) mark_[element] = stamp;
                }
                auto marked = [&](Index node) { return mark_[node] == stamp; };
                if (!std::all_of(states_[other].begin(), states_[other].end(), marked) ||
                    !std::all_of(elements_[other].begin(), elements_[other].end(), marked))
                    continue;
                dequeue(other);
                kind_[other] = Gone;
                weight_[kept] += weight_[other];
                merged_[kept].push_back(other);
                states_[other] = {};
                elements_[other] = {};
            }
        }
    }

    void update_degrees(Index pivot, Index width) {
        Index remaining = size_ - static_cast<Index>(order.size());
        for (Index state : members_[pivot]) {
            Index own = weight_[state], bound = width - own;
            Index degree = bound;
            for (Index other : states_[state]) degree += weight_[other];
            for (Index element : elements_[state]) {
                if (element != pivot && kind_[element] == Element) degree += std::max<Index>(outside_[element], 0);
            }
            degree = std::min({degree, degree_[state] + bound, remaining - own});
            dequeue(state);
            degree_[state] = std::max<Index>(degree, 0);
            enqueue(state);
        }
        for (Index element : touched_) outside_[element] = -1;
    }

    // `pivots` rows are eliminated, each before `width` others and those of its own kind.
    void count(double pivots, double width) {
        cost.entries += pivots * width + pivots * (pivots - 1.0) / 2.0;
        for (double done = 0.0; done < pivots; done += 1.0) {
            double after = width + pivots - 1.0 - done;
            cost.operations += after * after;
        }
        fits = cost.entries <= limit_.entries && cost.operations <= limit_.operations;
    }

    Index size_, least_ = 0, stamp_ = 0;
    Cost limit_;
    Lists states_, elements_, members_;
    std::vector<Index> weight_, degree_, mark_, outside_, heads_, next_, previous_, touched_;
    Lists merged_;
    std::vector<Kind> kind_;
};

}  // namespace prism_gpu
