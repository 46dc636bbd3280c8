// Cycles over aggregates of states (Koury, McAllister, Stewart 1984; Horton, Leutenegger 1994).
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "flows.hpp"
#include "team.hpp"

using prism_gpu::Index;
using prism_gpu::Team;

// `HostLevel` of engines/host/multilevel.py: a chain, and how the next one comes from it. All that is of the
// next one is null at the last level.
struct PgLevel {
    PgFlows flows;
    double* x;       // values of the states; of the first level, they come with each cycle
    double* spare;   // room for those after a sweep
    const std::int64_t* bounds;  // pieces of the states that threads share out
    std::int64_t pieces;
    const std::int32_t* aggregate;     // of each state
    const std::int32_t* adds_to;       // the next level's entry that each entry adds to, or negative
    const std::int32_t* rows;          // in the order of pieces that add to different entries; null for theirs
    const std::int64_t* row_bounds;    // such pieces of `rows`
    const std::int64_t* entry_bounds;  // and of the next level's entries
    std::int64_t sum_pieces;
    const std::int32_t* from_offsets;  // the next level's entries by the aggregate that they lead from
    const std::int32_t* from_entries;
    std::int32_t threads;
};

// `HostCycle` of engines/host/multilevel.py.
struct PgCycle {
    double omega;                  // relaxation of sweeps
    double floor;                  // bound below of the first level's values
    double largest;                // bound of corrections and, inverted, below
    std::int32_t before, after;    // sweeps on the way down and up; even numbers
};

namespace {

struct Bounds {
    double least, most;

    // What is no number stays so.
    double operator()(double value) const {
        double raised = least > value ? least : value;
        return most < raised ? most : raised;
    }
};

// A sweep of Jacobi's method with relaxation for x F = x D, F the flows, D their sums.
void smooth(const PgFlows& flows, Index first, Index behind, double omega, Bounds bounds, const double* x, double* x_new) {
    for (Index row = first; row < behind; row++) {
        double total = 0.0;
        for (Index entry = flows.offsets[row]; entry < flows.offsets[row + 1]; entry++)
            total += flows.values[entry] * x[flows.columns[entry]];
        double after = x[row];
        // Flows that have vanished leave nothing to balance.
        if (flows.out[row] > 0.0) after = (1.0 - omega) * after + omega * (total / flows.out[row]);
        x_new[row] = bounds(after);
    }
}

// Adds up the flows between aggregates that the values of their states make.
void sum_flows(const PgLevel& level, const PgLevel& next, Index piece, const double* x) {
    double* sums = next.flows.values;
    std::fill(sums + level.entry_bounds[piece], sums + level.entry_bounds[piece + 1], 0.0);
    for (Index place = level.row_bounds[piece]; place < level.row_bounds[piece + 1]; place++) {
        Index row = level.rows ? level.rows[place] : place;
        for (Index entry = level.flows.offsets[row]; entry < level.flows.offsets[row + 1]; entry++) {
            Index sum = level.adds_to[entry];
            if (sum >= 0) sums[sum] += level.flows.values[entry] * x[level.flows.columns[entry]];
        }
    }
}

// Adds up what leaves each aggregate, whose correction begins as 1.
void begin_next(const PgLevel& level, const PgLevel& next, Index piece) {
    for (Index state = next.bounds[piece]; state < next.bounds[piece + 1]; state++) {
        double total = 0.0;
        for (Index place = level.from_offsets[state]; place < level.from_offsets[state + 1]; place++)
            total += next.flows.values[level.from_entries[place]];
        next.flows.out[state] = total;
        next.x[state] = 1.0;
    }
}

// Solves x F = x D without subtraction (Grassmann, Taksar, Heyman 1985), scaled so that the total flow stays
// what it was. dense: room for a number of each pair of states.
void eliminate(const PgFlows& flows, double* dense, double* x) {
    const Index size = flows.states;
    std::fill(dense, dense + size * size, 0.0);
    for (Index row = 0; row < size; row++)
        for (Index entry = flows.offsets[row]; entry < flows.offsets[row + 1]; entry++)
            dense[flows.columns[entry] * size + row] = flows.values[entry];
    for (Index last = size - 1; last > 0; last--) {
        const double* leaves = dense + last * size;
        double leaving = 0.0;
        for (Index column = 0; column < last; column++) leaving += leaves[column];
        for (Index row = 0; row < last; row++) {
            double* line = dense + row * size;
            double share = leaving > 0.0 ? line[last] / leaving : 0.0;
            line[last] = share;
            if (share > 0.0)
                for (Index column = 0; column < last; column++) line[column] += share * leaves[column];
        }
    }
    x[0] = 1.0;
    for (Index state = 1; state < size; state++) {
        double total = 0.0;
        for (Index before = 0; before < state; before++) total += x[before] * dense[before * size + state];
        x[state] = total;
    }
    double wanted = 0.0, made = 0.0;
    for (Index state = 0; state < size; state++) wanted += flows.out[state];
    for (Index state = 0; state < size; state++) made += x[state] * flows.out[state];
    if (made > 0.0)
        for (Index state = 0; state < size; state++) x[state] *= wanted / made;
}

// The steps of a cycle: on each level but the last the sweeps on the way down and the two sums of the next
// one's flows, then the elimination, then on each level, backwards, the correction and the sweeps on the way up.
class Cycle {
public:
    Cycle(const PgCycle& how, const PgLevel* levels, Index count, double* x, double* spare, double* dense)
        : how_(how), levels_(levels), last_(count - 1), x_(x), spare_(spare), dense_(dense),
          down_(how.before + 2), up_(how.after + 1) {}

    // Levels from `alone` on are too small for threads: all their steps are one.
    void run(Index alone, int threads) {
        const Index first = alone * down_, behind = first + (last_ - alone) * (down_ + up_) + 1;
        const Index end = last_ * (down_ + up_) + 1;
        Index step = 0;
        auto pieces = [&]() -> Index { return step == first ? 1 : step < end ? pieces_of(step) : -1; };
        auto next = [&]() noexcept {
            step = step == first ? behind : step + 1;
            return pieces();
        };
        prism_gpu::in_phases(threads, pieces(), [&](int, Index piece) {
            if (step != first) return make(step, piece);
            for (Index one = first; one < behind; one++)
                for (Index each = 0; each < pieces_of(one); each++) make(one, each);
        }, next);
    }

private:
    Index level_of(Index step) const {
        Index middle = last_ * down_;
        return step < middle ? step / down_ : last_ - (step - middle - 1) / up_ - 1;
    }

    Index pieces_of(Index step) const {
        if (step == last_ * down_) return 1;
        const PgLevel& level = levels_[level_of(step)];
        if (step > last_ * down_ || step % down_ < how_.before) return level.pieces;
        return step % down_ == how_.before ? level.sum_pieces : (&level)[1].pieces;
    }

    void make(Index step, Index piece) const {
        const Index middle = last_ * down_;
        if (step == middle) return eliminate(levels_[last_].flows, dense_, last_ ? levels_[last_].x : x_);
        const Index number = level_of(step);
        const PgLevel &level = levels_[number], &next = levels_[number + 1];
        double* x = number ? level.x : x_;
        if (step < middle) {
            const Index made = step % down_;
            if (made < how_.before) return sweep(number, made, piece);
            return made == how_.before ? sum_flows(level, next, piece, x) : begin_next(level, next, piece);
        }
        const Index made = (step - middle - 1) % up_;
        if (made > 0) return sweep(number, made - 1, piece);
        for (Index state = level.bounds[piece]; state < level.bounds[piece + 1]; state++)
            x[state] = limits(number)(x[state] * next.x[level.aggregate[state]]);
    }

    void sweep(Index number, Index made, Index piece) const {
        const PgLevel& level = levels_[number];
        double *x = number ? level.x : x_, *spare = number ? level.spare : spare_;
        if (made % 2) std::swap(x, spare);
        smooth(level.flows, level.bounds[piece], level.bounds[piece + 1], how_.omega, limits(number), x, spare);
    }

    Bounds limits(Index number) const {
        return number ? Bounds{1.0 / how_.largest, how_.largest} : Bounds{how_.floor, HUGE_VAL};
    }

    const PgCycle& how_;
    const PgLevel* levels_;
    Index last_;
    double *x_, *spare_, *dense_;
    Index down_, up_;
};

}  // namespace

// Sets the flows of the second of two levels to those that the values x of the first one's states make.
extern "C" void pg_join_flows(const PgLevel* levels, const double* x) {
    const PgLevel &level = levels[0], &next = levels[1];
    Team(level.threads).share(level.sum_pieces, [&](Index piece) { sum_flows(level, next, piece, x); });
    Team(next.threads).share(next.pieces, [&](Index piece) { begin_next(level, next, piece); });
}

// Makes a cycle. x, spare: values of the first level's states, and room for others. dense: room for a number
// of each pair of the last level's states.
extern "C" void pg_cycle(
    const PgCycle* how, const PgLevel* levels, std::int64_t count, double* x, double* spare, double* dense) {
    Index alone = 0;
    while (alone < count - 1 && levels[alone].threads > 1) alone++;
    Cycle(*how, levels, count, x, spare, dense).run(alone, alone ? levels[0].threads : 1);
}

// Multiplies what a cycle has made by a factor, and finds the largest change of each piece; of values up to
// `least` it says nothing. What is no number is larger than any.
extern "C" void pg_rescale(
    const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, const double* before, double factor,
    double least, std::int32_t absolute, double* after, double* changes) {
    Team(threads).share(pieces, [&](Index piece) {
        double largest = 0.0;
        for (Index state = bounds[piece]; state < bounds[piece + 1]; state++) {
            double value = after[state] *= factor;
            if (value <= least) continue;
            double change = std::fabs(value - before[state]);
            if (!absolute) change /= std::fabs(before[state]);
            if (change > largest || std::isnan(change)) largest = change;
        }
        changes[piece] = largest;
    });
}
