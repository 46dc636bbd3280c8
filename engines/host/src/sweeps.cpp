// One-sided sweeps: x' <- (1 - w) x + w (b + A x) of a chain, the best of a state's rows of an MDP.
#include "change.hpp"
#include "codes.hpp"
#include "rows.hpp"
#include "team.hpp"

using prism_gpu::Best;
using prism_gpu::Change;
using prism_gpu::Index;
using prism_gpu::Only;
using prism_gpu::Rows;

namespace {

// Computes the rows, or groups of rows, from `first` to before `behind`; returns the largest change.
template <bool absolute, class System, class Made>
__attribute__((noinline)) double sweep(
    System system, Index first, Index behind, const Made& made, const double* x, double* x_new) {
    Change change{absolute};
    Rows<System> rows(system, x, system.first_row(first));
    for (Index unit = first; unit < behind; unit++) {
        Index state = system.state_of(unit);
        double before = x[state], after = made(rows, unit, before);
        x_new[state] = after;
        change.see(before, after);
    }
    return change.largest;
}

}  // namespace

// Makes a sweep for each of `changes`, or until one changes less than `stop_below`; the vectors change
// places after each. codes: null where the matrix has its values itself. bounds: where the pieces of rows or
// groups start that threads share out, and the end.
extern "C" std::int64_t pg_sweeps(
    const PgSystem* given, const PgCodes* codes, const std::int64_t* bounds, std::int64_t pieces,
    std::int32_t threads, double omega, double* changes, std::int64_t sweeps, double stop_below, double* x,
    double* x_new, std::int32_t absolute) {
    return prism_gpu::with_types(*given, codes, [&](const auto& system) {
        auto repeat = [&](const auto& made) {
            auto work = [&](Index number, Index piece) {
                const double* from = number % 2 ? x_new : x;
                double* into = number % 2 ? x : x_new;
                Index first = bounds[piece], behind = bounds[piece + 1];
                return absolute ? sweep<true>(system, first, behind, made, from, into)
                                : sweep<false>(system, first, behind, made, from, into);
            };
            return prism_gpu::repeated(threads, pieces, changes, sweeps, stop_below, work);
        };
        if (!system.groups) return repeat(Only{omega});
        return system.minimise ? repeat(Best<true>{}) : repeat(Best<false>{});
    });
}
