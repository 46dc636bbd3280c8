// The product of a model and a deterministic automaton, of nodes that can be reached.
#include <cstdint>
#include <limits>

#include "matrix.hpp"

using prism_gpu::Index;

// `_HostProduct` of engines/host/automaton_product.py. A node is a state and a state of the automaton.
struct PgProduct {
    PgMatrix matrix;
    const void* groups;             // of the type of offsets: where each state's rows start; null for a row a state
    std::int64_t states;            // of the model
    const std::int32_t* letters;    // of each state
    std::int64_t width;             // how many letters there are
    std::int64_t reads_ahead;       // whether a step reads the letter of the state that it enters, or leaves
    const std::int32_t* steps;      // shape (automaton states, width): the next one, negative for none
    std::int32_t* numbers;          // shape (automaton states, states): of each node, or -1
    std::int32_t* node_states;      // of each number
    std::int32_t* node_automaton_states;
    std::int64_t found, expanded;   // nodes
    std::int64_t rows, entries;     // of the expanded ones
    std::int64_t missing;           // the place in the steps of one that is still to be made
};

namespace {

constexpr std::int32_t TO_BE_MADE = -3;

enum Reason : std::int64_t { DONE, MISSING, BUDGET_SPENT, FULL };

template <class Matrix>
class Product {
  public:
    Product(PgProduct& given, const Matrix& matrix)
        : product(given), matrix(matrix), groups(static_cast<const typename Matrix::OffsetType*>(given.groups)) {}

    Reason search(std::int64_t budget) {
        std::int64_t last = product.entries + budget;
        for (; product.expanded < product.found; product.expanded++) {
            if (product.entries >= last) return BUDGET_SPENT;
            Reason reason = expand(product.expanded);
            if (reason != DONE) return reason;
        }
        return DONE;
    }

    // Writes the rows of all nodes; model_rows: of each the model's, or for one that stays the number of these.
    void write(std::int64_t* group_offsets, std::int64_t* row_offsets, std::int32_t* columns, double* values,
               std::int64_t* model_rows) const {
        Index row = 0, entry = 0;
        group_offsets[0] = row_offsets[0] = 0;
        for (std::int64_t node = 0; node < product.found; node++) {
            std::int32_t after = decided_by(node);
            if (after < 0) {
                model_rows[row] = matrix.rows;
                columns[entry] = static_cast<std::int32_t>(node);
                values[entry++] = 1.0;
                row_offsets[++row] = entry;
                group_offsets[node + 1] = row;
                continue;
            }
            Index state = product.node_states[node];
            for (Index own = first_row(state); own < first_row(state + 1); own++) {
                model_rows[row] = own;
                for (Index at = matrix.begin(own); at < matrix.end(own); at++, entry++) {
                    Index target = matrix.columns[at];
                    columns[entry] = *number_of(step(node, target, after), target);
                    values[entry] = matrix.value(at);
                }
                row_offsets[++row] = entry;
            }
            group_offsets[node + 1] = row;
        }
    }

  private:
    PgProduct& product;
    const Matrix& matrix;
    const typename Matrix::OffsetType* groups;

    Index first_row(Index state) const { return groups ? static_cast<Index>(groups[state]) : state; }

    std::int64_t place(std::int32_t automaton_state, Index read) const {
        return automaton_state * product.width + product.letters[read];
    }

    // The automaton's step out of a node where what it reads is there already, else its own state.
    std::int32_t decided_by(std::int64_t node) const {
        std::int32_t own = product.node_automaton_states[node];
        return product.reads_ahead ? own : product.steps[place(own, product.node_states[node])];
    }

    std::int32_t step(std::int64_t node, Index target, std::int32_t decided) const {
        return product.reads_ahead ? product.steps[place(product.node_automaton_states[node], target)] : decided;
    }

    std::int32_t* number_of(std::int32_t automaton_state, Index state) const {
        return product.numbers + automaton_state * product.states + state;
    }

    Reason missing(std::int64_t node, Index read) {
        product.missing = place(product.node_automaton_states[node], read);
        return MISSING;
    }

    // A node whose expansion breaks off is expanded again: what was found stays.
    Reason expand(std::int64_t node) {
        Index state = product.node_states[node];
        std::int32_t decided = decided_by(node);
        if (decided == TO_BE_MADE) return missing(node, state);
        if (decided < 0) {
            product.rows++;
            product.entries++;
            return DONE;
        }
        Index begin = matrix.begin(first_row(state)), end = matrix.begin(first_row(state + 1));
        for (Index at = begin; at < end; at++) {
            Index target = matrix.columns[at];
            std::int32_t after = step(node, target, decided);
            if (after < 0) return missing(node, target);
            std::int32_t* number = number_of(after, target);
            if (*number >= 0) continue;
            if (product.found == std::numeric_limits<std::int32_t>::max()) return FULL;
            product.node_states[product.found] = static_cast<std::int32_t>(target);
            product.node_automaton_states[product.found] = after;
            *number = static_cast<std::int32_t>(product.found++);
        }
        product.rows += first_row(state + 1) - first_row(state);
        product.entries += end - begin;
        return DONE;
    }
};

}  // namespace

// Goes on with the search, breadth first, until so many more entries were looked at; returns why it stops.
extern "C" std::int64_t pg_product_search(PgProduct* given, std::int64_t budget) {
    return prism_gpu::with_types(given->matrix, [&](const auto& matrix) -> std::int64_t {
        return Product(*given, matrix).search(budget);
    });
}

// Writes the rows of all nodes, once they are found, in the order of the model's.
extern "C" void pg_product_rows(
    PgProduct* given, std::int64_t* group_offsets, std::int64_t* row_offsets, std::int32_t* columns, double* values,
    std::int64_t* model_rows) {
    prism_gpu::with_types(given->matrix, [&](const auto& matrix) {
        Product(*given, matrix).write(group_offsets, row_offsets, columns, values, model_rows);
    });
}
