// Components by the textbook, which the engines are measured against: Tarjan's search (1972) as it was
// published, and the basic algorithm of end components (de Alfaro 1997) over it.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

using Index = std::int64_t;
using State = std::int32_t;

constexpr State OPEN = -1;      // the label of a state that is in no component yet
constexpr State SETTLED = -2;   // and of one that the search is to leave out
constexpr State NO_STATE = -1;  // the column of an entry that is no edge any more

// Tarjan's search for the strong components of the open states; returns how many there are.
//
// firsts: the edges of a state are columns[firsts[s]] to columns[firsts[s + 1] - 1]; from open states they
// lead to open ones only.
State tarjan(State states, const Index* firsts, const State* columns, State* labels) {
    std::vector<State> index(states, 0), low(states), stack, path;
    std::vector<Index> edge_at;
    State visited = 0, count = 0;
    for (State root = 0; root < states; root++) {
        if (labels[root] != OPEN || index[root] > 0) continue;
        auto enter = [&](State state) {
            index[state] = low[state] = ++visited;
            stack.push_back(state);
            path.push_back(state);
            edge_at.push_back(firsts[state]);
        };
        enter(root);
        while (!path.empty()) {
            State state = path.back();
            if (edge_at.back() < firsts[state + 1]) {
                State target = columns[edge_at.back()++];
                if (target == NO_STATE) continue;
                if (index[target] == 0) enter(target);
                else if (labels[target] == OPEN) low[state] = std::min(low[state], index[target]);
                continue;
            }
            if (low[state] == index[state]) {
                State member;
                do {
                    member = stack.back();
                    stack.pop_back();
                    labels[member] = count;
                } while (member != state);
                count++;
            }
            path.pop_back();
            edge_at.pop_back();
            if (!path.empty()) low[path.back()] = std::min(low[path.back()], low[state]);
        }
    }
    return count;
}

// A graph whose choices are taken away one by one.
struct Choices {
    const Index* rows;
    State* columns;
    const State* owner;
    std::vector<char> usable;
    std::vector<State> remaining, gone;
    std::vector<char> changed;

    // Takes a choice away, with its edges, out of a component.
    void lose(Index row, State component) {
        State state = owner[row];
        usable[row] = false;
        std::fill(columns + rows[row], columns + rows[row + 1], NO_STATE);
        changed[component] = true;
        if (--remaining[state] == 0) gone.push_back(state);
    }
};

}  // namespace

extern "C" std::int32_t pg_textbook_components(
    std::int32_t states, const std::int64_t* firsts, const std::int32_t* columns, std::int32_t* labels) {
    std::fill(labels, labels + states, OPEN);
    return tarjan(states, firsts, columns, labels);
}

// The rows that have an edge to each state: those of state s are from firsts[s] on.
extern "C" void pg_textbook_rows_into(
    std::int32_t states, std::int64_t count, const std::int64_t* rows, const std::int32_t* columns,
    std::int64_t* firsts, std::int32_t* into) {
    std::fill(firsts, firsts + states + 1, 0);
    for (Index edge = 0; edge < rows[count]; edge++) firsts[columns[edge] + 1]++;
    std::partial_sum(firsts, firsts + states + 1, firsts);
    std::vector<Index> free(firsts, firsts + states);
    for (Index row = 0; row < count; row++)
        for (Index edge = rows[row]; edge < rows[row + 1]; edge++)
            into[free[columns[edge]]++] = static_cast<State>(row);
}

// The basic algorithm; returns the number of end components. columns: overwritten. result: their labels, or -1.
extern "C" std::int32_t pg_textbook_end_components(
    std::int32_t states, const std::int64_t* groups, const std::int64_t* rows, const std::int64_t* firsts,
    std::int32_t* columns, const std::int64_t* into_firsts, const std::int32_t* into, const std::int32_t* owner,
    std::int32_t* result) {
    const Index count = groups[states];
    Choices choices{rows, columns, owner, std::vector<char>(count, true), std::vector<State>(states), {}, {}};
    for (State state = 0; state < states; state++)
        choices.remaining[state] = static_cast<State>(groups[state + 1] - groups[state]);
    std::vector<State> labels(states, OPEN);
    std::fill(result, result + states, -1);
    State found = 0;
    for (State in_doubt = states; in_doubt > 0;) {
        const State components = tarjan(states, firsts, columns, labels.data());
        choices.changed.assign(components, false);
        for (Index row = 0; row < count; row++) {
            State state = owner[row];
            if (!choices.usable[row] || result[state] >= 0) continue;
            bool leaves = std::any_of(columns + rows[row], columns + rows[row + 1], [&](State target) {
                return labels[target] != labels[state];
            });
            if (leaves) choices.lose(row, labels[state]);
        }
        // Who cannot avoid a state that is gone is gone too.
        while (!choices.gone.empty()) {
            State state = choices.gone.back();
            choices.gone.pop_back();
            for (Index at = into_firsts[state]; at < into_firsts[state + 1]; at++)
                if (choices.usable[into[at]]) choices.lose(into[at], labels[owner[into[at]]]);
        }
        in_doubt = 0;
        std::vector<State> number(components, -1);
        for (State state = 0; state < states; state++) {
            if (result[state] >= 0 || choices.remaining[state] == 0) {
                labels[state] = SETTLED;
            } else if (choices.changed[labels[state]]) {
                labels[state] = OPEN;
                in_doubt++;
            } else {
                State& own = number[labels[state]];
                if (own < 0) own = found++;
                result[state] = own;
                labels[state] = SETTLED;
            }
        }
    }
    return found;
}
