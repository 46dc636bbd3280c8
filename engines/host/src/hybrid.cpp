// Diagonals of matrices of shared blocks, and walks through their graphs.
#include "hybrid.hpp"

#include "team.hpp"

using prism_gpu::Index;

// Writes each state's entry on the diagonal, and the sum of its others. bounds: where the pieces of states
// start that threads share out, and the end.
extern "C" void pg_hybrid_parts(
    const PgHybrid* hybrid, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads,
    double* diagonal, double* others) {
    prism_gpu::Team(threads).share(pieces, [&](Index piece) {
        const Index begin = bounds[piece], behind = bounds[piece + 1];
        if (begin == behind) return;
        Index strip = prism_gpu::strip_of(*hybrid, begin);
        for (Index state = begin; state < behind; state++) {
            strip = prism_gpu::strip_from(*hybrid, strip, state);
            double on = 0.0, off = 0.0;
            prism_gpu::for_entries(*hybrid, strip, state, [&](Index column, double value) {
                (column == state ? on : off) += value;
            });
            diagonal[state] = on;
            others[state] = off;
        }
    });
}

// Completes a set by all that its only member, `queue[0]`, leads to; returns its size. The queue, which has
// room for all states, takes the members in the order in which they are found.
extern "C" std::int64_t pg_hybrid_reach(const PgHybrid* hybrid, std::uint8_t* reached, std::uint32_t* queue) {
    Index count = 1;
    for (Index next = 0; next < count; next++) {
        const Index state = queue[next];
        prism_gpu::for_entries(*hybrid, prism_gpu::strip_of(*hybrid, state), state, [&](Index column, double) {
            if (reached[column]) return;
            reached[column] = 1;
            queue[count++] = static_cast<std::uint32_t>(column);
        });
    }
    return count;
}
