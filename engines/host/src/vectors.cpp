// A diagram's values in all states.
#include <algorithm>
#include <new>
#include <type_traits>
#include <unordered_map>

#include "paths.hpp"

using prism_gpu::Index;

namespace {

// Below fewer states, paths are followed again rather than their values looked up and copied.
constexpr Index FEWEST_COPIED = 32;

template <class Value>
class Vector {
   public:
    Vector(const PgDiagram& diagram, const std::int64_t* counts, Value* found)
        : diagram_(diagram), counts_(counts), found_(found) {}

    // Writes the values below a node of the diagram and one of the numbering, from a state on. Returns false
    // where another variable is tested.
    bool write(std::int32_t node, std::int32_t place, Index depth, Index state) {
        if (place < 0 || node == 0) return true;
        const std::int32_t variable = diagram_.variables[node];
        if (variable == prism_gpu::TERMINAL) {
            std::fill_n(found_ + state, counts_[place], value_of(node));
            return true;
        }
        if (depth == diagram_.levels || variable < diagram_.rows[depth]) {
            strange = node;
            return false;
        }
        if (counts_[place] < FEWEST_COPIED) return write_below(node, place, depth, state);
        auto [known, fresh] = firsts_.try_emplace(static_cast<std::uint64_t>(node) << 32 | place, state);
        if (!fresh) {
            std::copy_n(found_ + known->second, counts_[place], found_ + state);
            return true;
        }
        return write_below(node, place, depth, state);
    }

    Index strange = -1;

   private:
    bool write_below(std::int32_t node, std::int32_t place, Index depth, Index state) {
        const bool tests = diagram_.variables[node] == diagram_.rows[depth];
        const std::int32_t low = tests ? diagram_.low[node] : node, high = tests ? diagram_.high[node] : node;
        return write(low, diagram_.numbering_low[place], depth + 1, state) &&
               write(high, diagram_.numbering_high[place], depth + 1, state + diagram_.low_counts[place]);
    }

    Value value_of(std::int32_t node) const {
        if constexpr (std::is_same_v<Value, double>) return diagram_.values[node];
        else return diagram_.values[node] != 0.0;
    }

    const PgDiagram& diagram_;
    const std::int64_t* counts_;
    Value* found_;
    // The first state that two nodes were met at together: all that is below is written when they come again.
    std::unordered_map<std::uint64_t, Index> firsts_;
};

template <class Value>
std::int64_t expand(const PgDiagram& diagram, std::int32_t root, const std::int64_t* counts, Value* found) try {
    Vector<Value> vector(diagram, counts, found);
    vector.write(root, static_cast<std::int32_t>(diagram.numbering_root), 0, 0);
    return vector.strange;
} catch (const std::bad_alloc&) {
    return -2;
}

}  // namespace

// Writes the value in each state where it is not 0, or with `members` there the byte 1. Returns a node that
// tests a variable which is not a row's, -1, or -2 where there is no memory.
extern "C" std::int64_t pg_expand_vector(
    const PgDiagram* diagram, std::int32_t root, const std::int64_t* counts, double* values, std::uint8_t* members) {
    return values ? expand(*diagram, root, counts, values) : expand(*diagram, root, counts, members);
}
