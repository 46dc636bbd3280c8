// One-sided sweeps over runs of rows of the same shape: loops go along the rows, several in an instruction.
#include <cmath>
#include <cstring>
#include <limits>

#include "run_length.hpp"
#include "change.hpp"
#include "team.hpp"

using prism_gpu::Change;
using prism_gpu::Index;
using prism_gpu::LONGEST_RUN;

// The loader takes the variant for the widest vectors that the processor has; others have one width.
// It asks before the thread sanitizer has begun, which would end the process.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define FOR_EACH_WIDTH __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define FOR_EACH_WIDTH
#endif
// What is not inlined would be compiled for the narrowest vectors.
#define INLINED inline __attribute__((always_inline))

// `HostRuns` of engines/host/runs.py; engines/host/run_encoding.py says what the arrays hold.
struct PgRuns {
    const std::int64_t *firsts, *lengths, *run_choices, *choice_pairs, *distances;
    const double* numbers;
    const std::int64_t* number_starts;
    const double* givens;  // null for 0
    const std::int64_t* given_starts;
    std::int32_t numbers_apart, givens_apart;
    std::int32_t choose;  // 0 for a chain; negative for the least, positive for the largest of the choices
};

namespace {

constexpr Index LANES = 8, WITHOUT_SIGN = std::numeric_limits<Index>::max();
using Lanes = double __attribute__((vector_size(LANES * sizeof(double))));
using LaneBits = Index __attribute__((vector_size(LANES * sizeof(Index))));

// What the first products of a row are added to: one number, or one for each row, or their earlier sums.
enum class Start { number, numbers, sums };

struct Terms {
    double number = 0.0;               // of Start::number
    const double* numbers = nullptr;   // of Start::numbers
    const double* x = nullptr;         // at the first row's state
    const Index* distances = nullptr;  // one a pair
    const double* factors = nullptr;   // one a pair, or one for each row of each pair
};

// Adds some products to the sums of a run's rows.
template <int pairs, bool apart, Start start>
INLINED void add(const Terms& terms, double* __restrict sums, Index size) {
    const double *shifted[pairs + 1], *own[pairs + 1];
    double shared[pairs + 1];
#pragma GCC unroll 4
    for (int pair = 0; pair < pairs; pair++) {
        shifted[pair] = terms.x + terms.distances[pair];
        own[pair] = terms.factors + (apart ? pair * size : pair);
        shared[pair] = *own[pair];
    }
    for (Index row = 0; row < size; row++) {
        double total = start == Start::number ? terms.number : start == Start::numbers ? terms.numbers[row] : sums[row];
#pragma GCC unroll 4
        for (int pair = 0; pair < pairs; pair++)
            total += (apart ? own[pair][row] : shared[pair]) * shifted[pair][row];
        sums[row] = total;
    }
}

template <bool apart, Start start>
INLINED void add_up_to_four(Index pairs, const Terms& terms, double* __restrict sums, Index size) {
    switch (pairs) {
        case 0: return add<0, apart, start>(terms, sums, size);
        case 1: return add<1, apart, start>(terms, sums, size);
        case 2: return add<2, apart, start>(terms, sums, size);
        case 3: return add<3, apart, start>(terms, sums, size);
        default: return add<4, apart, start>(terms, sums, size);
    }
}

// Sums up the products of a run's rows, four pairs at a time: their sums stay in registers meanwhile.
template <bool apart>
INLINED void add_all(Index pairs, Terms terms, double* __restrict sums, Index size) {
    if (terms.numbers)
        add_up_to_four<apart, Start::numbers>(pairs, terms, sums, size);
    else
        add_up_to_four<apart, Start::number>(pairs, terms, sums, size);
    for (pairs -= 4; pairs > 0; pairs -= 4) {
        terms.distances += 4;
        terms.factors += apart ? 4 * size : 4;
        add_up_to_four<apart, Start::sums>(pairs, terms, sums, size);
    }
}

INLINED void choose_best(bool minimise, const double* __restrict sums, double* __restrict best, Index size) {
    if (minimise)
        for (Index row = 0; row < size; row++) best[row] = sums[row] < best[row] ? sums[row] : best[row];
    else
        for (Index row = 0; row < size; row++) best[row] = sums[row] > best[row] ? sums[row] : best[row];
}

template <bool absolute>
INLINED void see(const double* before, const double* after, Index size, Change& change) {
    // Most runs change less than another before them, or not at all: one comparison a row tells.
    Index more = 0;
    if (change.largest == 0.0)
        for (Index row = 0; row < size; row++) more |= after[row] != before[row];
    else
        for (Index row = 0; row < size; row++) {
            double scale = absolute ? 1.0 : std::fabs(before[row]);
            more |= std::fabs(after[row] - before[row]) >= change.largest * scale;
        }
    if (!more) return;
    Lanes largest = Lanes{} + change.largest;
    Index row = 0;
    for (; row + LANES <= size; row += LANES) {
        Lanes from, to;
        std::memcpy(&from, before + row, sizeof from);
        std::memcpy(&to, after + row, sizeof to);
        Lanes relative = reinterpret_cast<Lanes>(reinterpret_cast<LaneBits>(to - from) & WITHOUT_SIGN);
        if (!absolute) relative /= reinterpret_cast<Lanes>(reinterpret_cast<LaneBits>(from) & WITHOUT_SIGN);
        largest = relative > largest ? relative : largest;
    }
    for (Index lane = 0; lane < LANES; lane++)
        if (largest[lane] > change.largest) change.largest = largest[lane];
    for (; row < size; row++) change.see(before[row], after[row]);
}

INLINED void sweep_run(
    const PgRuns& runs, Index run, double omega, const double* x, double* __restrict x_new, double* aside,
    Change& change) {
    Index first = runs.firsts[run], size = runs.lengths[run];
    double* after = x_new + first;
    if (runs.choose)
        for (Index row = 0; row < size; row++) after[row] = runs.choose < 0 ? HUGE_VAL : -HUGE_VAL;
    Terms terms{};
    terms.x = x + first;
    terms.factors = runs.numbers + runs.number_starts[run];
    const double* given = runs.givens ? runs.givens + runs.given_starts[run] : nullptr;
    for (Index choice = runs.run_choices[run]; choice < runs.run_choices[run + 1]; choice++) {
        Index pair = runs.choice_pairs[choice], pairs = runs.choice_pairs[choice + 1] - pair;
        terms.distances = runs.distances + pair;
        if (given && runs.givens_apart) terms.numbers = given;
        if (given && !runs.givens_apart) terms.number = *given;
        if (given) given += runs.givens_apart ? size : 1;
        double* sums = runs.choose ? aside : after;
        if (runs.numbers_apart)
            add_all<true>(pairs, terms, sums, size);
        else
            add_all<false>(pairs, terms, sums, size);
        terms.factors += runs.numbers_apart ? pairs * size : pairs;
        if (runs.choose) choose_best(runs.choose < 0, sums, after, size);
    }
    const double* before = x + first;
    if (omega != 1.0)
        for (Index row = 0; row < size; row++) after[row] = (1.0 - omega) * before[row] + omega * after[row];
    if (change.absolute)
        see<true>(before, after, size, change);
    else
        see<false>(before, after, size, change);
}

// Computes the states of the runs from `first` to before `behind`; returns the largest change.
FOR_EACH_WIDTH double sweep(
    const PgRuns& runs, Index first, Index behind, double omega, const double* x, double* x_new, bool absolute) {
    Change change{absolute};
    double aside[LONGEST_RUN];
    for (Index run = first; run < behind; run++) sweep_run(runs, run, omega, x, x_new, aside, change);
    return change.largest;
}

}  // namespace

// As `pg_sweeps`, over runs: bounds cut these.
extern "C" std::int64_t pg_sweep_runs(
    const PgRuns* runs, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, double omega,
    double* changes, std::int64_t sweeps, double stop_below, double* x, double* x_new, std::int32_t absolute) {
    return prism_gpu::repeated(threads, pieces, changes, sweeps, stop_below, [&](Index made, Index piece) {
        const double* from = made % 2 ? x_new : x;
        double* into = made % 2 ? x : x_new;
        return sweep(*runs, bounds[piece], bounds[piece + 1], omega, from, into, absolute != 0);
    });
}
