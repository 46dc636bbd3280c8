// Sums of powers of a uniformised chain's matrix: x' <- P x, and the total grows by a coefficient times x'.
#include "rows.hpp"
#include "team.hpp"

using prism_gpu::Index;
using prism_gpu::Rows;

namespace {

// P is the rates over `rate`, and `stay` on the diagonal.
struct Chain {
    const double* stay;
    double rate;
};

// Computes the rows from `first` to before `behind`; returns whether any of them changed.
template <class System>
__attribute__((noinline)) bool sweep(
    System system, Chain chain, Index first, Index behind, double coefficient, const double* x, double* x_new,
    double* total) {
    bool changed = false;
    Rows<System> rows(system, x, first);
    for (Index row = first; row < behind; row++) {
        double inflow = rows.next();
        Index state = system.state_of(row);
        double before = x[state], after = chain.stay[row] * before + inflow / chain.rate;
        x_new[state] = after;
        if (coefficient != 0.0) total[row] += coefficient * after;
        changed |= after != before;
    }
    return changed;
}

}  // namespace

// Makes a sweep for each coefficient and adds it to the total, or until one changes nothing; returns how many
// were made. The vectors change places after each. given: a chain's rates off the diagonal, without an offset.
// bounds: where the pieces of rows start that threads share out, and the end. changed: takes 1 for each sweep
// that changed anything, else 0.
extern "C" std::int64_t pg_add_powers(
    const PgSystem* given, const double* stay, double rate, const std::int64_t* bounds, std::int64_t pieces,
    std::int32_t threads, const double* coefficients, double* changed, std::int64_t sweeps, double* x, double* x_new,
    double* total) {
    return prism_gpu::with_types(*given, [&](const auto& system) {
        return prism_gpu::repeated(threads, pieces, changed, sweeps, 0.5, [&](Index made, Index piece) {
            const double* from = made % 2 ? x_new : x;
            double* into = made % 2 ? x : x_new;
            Index first = bounds[piece], behind = bounds[piece + 1];
            return sweep(system, {stay, rate}, first, behind, coefficients[made], from, into, total) ? 1.0 : 0.0;
        });
    });
}
