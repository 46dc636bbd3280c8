// Sums of powers of a uniformised chain's matrix: x' <- P x, and the total grows by a coefficient times x'.
#include <cmath>

#include "rows.hpp"
#include "team.hpp"

using prism_gpu::Index;
using prism_gpu::Rows;

namespace {

// P is the rates over `rate`, and `stay` on the diagonal. A sweep that changes no value by more than a share of it
// and so much is steady.
struct Chain {
    const double* stay;
    double rate, share, least;
};

// Computes the rows from `first` to before `behind`; returns 2 if the sweep is not steady by them, else 1 if any
// of them changed, else 0.
template <class System>
__attribute__((noinline)) double sweep(
    System system, Chain chain, Index first, Index behind, double coefficient, const double* x, double* x_new,
    double* total) {
    bool changed = false, moved = false;
    Rows<System> rows(system, x, first);
    for (Index row = first; row < behind; row++) {
        double inflow = rows.next();
        Index state = system.state_of(row);
        double before = x[state], after = chain.stay[row] * before + inflow / chain.rate;
        x_new[state] = after;
        if (coefficient != 0.0) total[row] += coefficient * after;
        changed |= after != before;
        moved |= std::abs(after - before) > chain.share * before + chain.least;
    }
    return moved ? 2.0 : changed ? 1.0 : 0.0;
}

}  // namespace

// Makes a sweep for each coefficient and adds it to the total, or until one changes nothing; returns how many
// were made. The vectors change places after each. given: a chain's rates off the diagonal, without an offset.
// share, least: what makes a sweep steady. bounds: where the pieces of rows start that threads share out, and the
// end. changes: takes 2 for each sweep that was not steady, 1 for another that changed anything, else 0.
extern "C" std::int64_t pg_add_powers(
    const PgSystem* given, const double* stay, double rate, double share, double least, const std::int64_t* bounds,
    std::int64_t pieces, std::int32_t threads, const double* coefficients, double* changes, std::int64_t sweeps,
    double* x, double* x_new, double* total) {
    return prism_gpu::with_types(*given, [&](const auto& system) {
        return prism_gpu::repeated(threads, pieces, changes, sweeps, 0.5, [&](Index made, Index piece) {
            const double* from = made % 2 ? x_new : x;
            double* into = made % 2 ? x : x_new;
            Index first = bounds[piece], behind = bounds[piece + 1];
            return sweep(system, {stay, rate, share, least}, first, behind, coefficients[made], from, into, total);
        });
    });
}
