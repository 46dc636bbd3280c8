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

// What a run reads, from its first state on: the iterate before the sweep.
struct Before {
    const double* before;

    const double* at(Index distance, Index) const { return before + distance; }
};

// The new iterate where this sweep has computed all that a pair reads, else that before it.
struct Newest {
    const double *before, *after;
    Index begin, end;  // distances between which this sweep has computed all states; equal for none

    const double* at(Index distance, Index size) const {
        return (begin <= distance && distance + size <= end ? after : before) + distance;
    }
};

template <class Reads>
struct Terms {
    Reads x;
    double number = 0.0;               // of Start::number
    const double* numbers = nullptr;   // of Start::numbers
    const Index* distances = nullptr;  // one a pair
    const double* factors = nullptr;   // one a pair, or one for each row of each pair
};

// Adds some products to the sums of a run's rows.
template <int pairs, bool apart, Start start, class Reads>
INLINED void add(const Terms<Reads>& terms, double* __restrict sums, Index size) {
    const double *shifted[pairs + 1], *own[pairs + 1];
    double shared[pairs + 1];
#pragma GCC unroll 4
    for (int pair = 0; pair < pairs; pair++) {
        shifted[pair] = terms.x.at(terms.distances[pair], size);
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

template <bool apart, Start start, class Reads>
INLINED void add_up_to_four(Index pairs, const Terms<Reads>& terms, double* __restrict sums, Index size) {
    switch (pairs) {
        case 0: return add<0, apart, start>(terms, sums, size);
        case 1: return add<1, apart, start>(terms, sums, size);
        case 2: return add<2, apart, start>(terms, sums, size);
        case 3: return add<3, apart, start>(terms, sums, size);
        default: return add<4, apart, start>(terms, sums, size);
    }
}

// Sums up the products of a run's rows, four pairs at a time: their sums stay in registers meanwhile.
template <bool apart, class Reads>
INLINED void add_all(Index pairs, Terms<Reads> terms, double* __restrict sums, Index size) {
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

// Computes the states of a run in `after`.
template <class Reads>
INLINED void sweep_run(
    const PgRuns& runs, Index run, double omega, Reads reads, double* __restrict after, double* aside, Change& change) {
    Index size = runs.lengths[run];
    if (runs.choose)
        for (Index row = 0; row < size; row++) after[row] = runs.choose < 0 ? HUGE_VAL : -HUGE_VAL;
    Terms<Reads> terms{reads};
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
    const double* before = reads.before;
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
    for (Index run = first; run < behind; run++) {
        Index at = runs.firsts[run];
        sweep_run(runs, run, omega, Before{x + at}, x_new + at, aside, change);
    }
    return change.largest;
}

// The same in the order of the runs, or against it: each reads what those before it have made.
FOR_EACH_WIDTH double sweep_in_order(
    const PgRuns& runs, Index first, Index behind, bool backwards, double omega, const double* x, double* x_new,
    bool absolute) {
    Change change{absolute};
    double aside[LONGEST_RUN];
    if (first == behind) return 0.0;
    Index begin = runs.firsts[first], end = runs.firsts[behind - 1] + runs.lengths[behind - 1];
    for (Index done = 0; done < behind - first; done++) {
        Index run = backwards ? behind - 1 - done : first + done, at = runs.firsts[run];
        Index from = backwards ? at + runs.lengths[run] : begin, to = backwards ? end : at;
        sweep_run(runs, run, omega, Newest{x + at, x_new + at, from - at, to - at}, x_new + at, aside, change);
    }
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

// As `pg_symmetric_sweeps`, over runs: what a run reads of itself is from before the sweep.
extern "C" std::int64_t pg_symmetric_run_sweeps(
    const PgRuns* runs, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, double omega,
    std::int64_t begun, double* changes, std::int64_t sweeps, double stop_below, double* x, double* x_new,
    std::int32_t absolute) {
    return prism_gpu::repeated(threads, pieces, changes, sweeps, stop_below, [&](Index made, Index piece) {
        bool backwards = (begun + made) % 2 != 0;
        const double* from = made % 2 ? x_new : x;
        double* into = made % 2 ? x : x_new;
        return sweep_in_order(
            *runs, bounds[piece], bounds[piece + 1], backwards, omega, from, into, absolute != 0);
    });
}
