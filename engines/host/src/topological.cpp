// Value iteration component by component: each takes the finished values of those that it leads to.
#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "change.hpp"
#include "components.hpp"
#include "walk.hpp"

constexpr int WINDOW = 64;  // contraction is observed over this many sweeps

// `Rule` of engines/host/topological.py, which explains its fields.
struct PgRule {
    double epsilon, rounding, rounding_of_a_sum;
    std::int64_t limit, slow_after;
    std::int32_t absolute, automatic, rising;
};

// `Place` of engines/host/topological.py.
struct PgPlace {
    std::int64_t component, sweeps;  // the present component, and the sweeps made in it
    std::int64_t iterations;         // all evaluations of single states and sweeps so far
    std::int64_t met, failed;        // how often in a row the test was met; how often no bound was found
    std::int64_t unmet;              // components that were left before they met the test
    double change, work;             // the largest last change of the components; the entries looked at
    double changes[WINDOW];          // a ring of the last changes
};

// `HostWalk` of engines/host/topological.py: one number a component, a state, or a state of the largest.
struct PgNumbers {
    const std::int64_t* how;
    double *errors, *x, *fresh, *before, *guess;
};

namespace prism_gpu {
namespace {

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr int TESTED_EVERY = 32;              // sweeps after which an automatic solve tests the contraction
constexpr double ROUNDING_A_SWEEP = 0x1p-51;  // by how much rounding alone may change a value, relative to it
constexpr int MOST_FAILURES = 4;              // how often an upper bound is looked for,
constexpr double FINER = 0.1;                 // and by what factor the error must be less in between

// Returns by what factor the last sweeps contracted: 0 for mere rounding, infinite if unknown.
//
// Maxima over each half of the changes are compared, because the change may swing within a period of the
// chain; rises from 0, which are infinite changes, end the look back.
double contraction(const double* changes, Index sweeps, double rounding) {
    Index seen = 0, most = std::min<Index>(sweeps, WINDOW);
    while (seen < most && changes[(sweeps - 1 - seen) % WINDOW] < INFINITE) seen++;
    Index half = seen / 2;
    double early = 0.0, late = 0.0;
    for (Index back = 0; back < seen; back++) {
        double change = changes[(sweeps - 1 - back) % WINDOW];
        double& part = back < seen - half ? late : early;
        part = std::max(part, change);
    }
    if (std::max(early, late) <= rounding && seen > 0) return 0.0;
    if (half == 0 || early <= rounding) return INFINITE;
    return std::pow(std::max(late, rounding) / early, 1.0 / static_cast<double>(seen - half));
}

// Returns the error to expect after a sweep with this change, at this contraction.
double expected_error(double change, double rate) {
    if (change == 0.0 || rate == 0.0) return change;
    return rate < 1.0 ? change * rate / (1.0 - rate) : INFINITE;
}

template <class Walk, bool minimise>
class Solve {
   public:
    Solve(const Walk& walk, const PgRule& rule, const PgNumbers& numbers, PgPlace& place)
        : walk_(walk), rule_(rule), numbers_(numbers), place_(place), x_(numbers.x) {}

    Reason go_on(Index budget) {
        while (place_.component < walk_.components) {
            Index own = place_.component, weight = walk_.weight(own);
            if (walk_.end(own) - walk_.begin(own) == 1) {
                Index state = walk_.found[walk_.begin(own)];
                x_[state] = best_row<true>(state);
                place_.iterations++;
                count(weight);
                finish(0.0, 0.0);
                if (worked_ > budget) return OUT_OF_BUDGET;
                continue;
            }
            if (numbers_.how[own] == ELSEWHERE) return OUTSIDE;
            bool patient = numbers_.how[own] == PATIENTLY;
            while (place_.component == own) {
                if (worked_ > budget) return OUT_OF_BUDGET;
                if (place_.sweeps >= rule_.limit) return LIMIT;
                double change = sweep(own);
                place_.changes[place_.sweeps++ % WINDOW] = change;
                place_.iterations++;
                count(weight);
                if (is_slow(own, weight, change, patient)) return SLOW;
            }
        }
        return DONE;
    }

   private:
    // Returns the value of a state's best row.
    //
    // Where no other state of the component is left, rows are solved for their own state; one that only
    // loops is worth nothing, or for ever more.
    template <bool without_loops>
    double best_row(Index state) const {
        const auto& matrix = walk_.system.matrix;
        double best = minimise ? INFINITE : -INFINITE;
        Index behind = walk_.system.groups[state + 1];
        for (Index row = walk_.system.groups[state]; row < behind; row++) {
            double total = walk_.system.offset ? walk_.system.offset[row] : 0.0, loop = 0.0, others = 0.0;
            bool leaves = false;
            for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) {
                Index column = matrix.columns[entry];
                if (without_loops && column == state) {
                    loop += matrix.value(entry);
                    continue;
                }
                if constexpr (without_loops) {
                    leaves = true;
                    others += matrix.value(entry);
                }
                total += matrix.value(entry) * x_[column];
            }
            if (without_loops && loop > 0.0) {
                if (!leaves) total = total > 0.0 ? INFINITE : 0.0;
                else if (std::fabs(others + loop - 1.0) <= rule_.rounding_of_a_sum) total /= others;
                else if (loop < 1.0) total /= 1.0 - loop;
            }
            best = (minimise ? total < best : total > best) ? total : best;
        }
        return best;
    }

    // Makes one sweep of a component, from the values before it; returns the largest change.
    double sweep(Index own) {
        Index begin = walk_.begin(own), end = walk_.end(own);
        double omega = walk_.system.omega;
        Change change{rule_.absolute != 0};
        for (Index at = begin; at < end; at++) {
            Index state = walk_.found[at];
            double before = x_[state], after = best_row<false>(state);
            if (omega != 1.0) after = (1.0 - omega) * before + omega * after;
            numbers_.fresh[at - begin] = after;
            change.see(before, after);
        }
        for (Index at = begin; at < end; at++) x_[walk_.found[at]] = numbers_.fresh[at - begin];
        return change.largest;
    }

    // Leaves the component if its test is met; returns whether it is to be solved elsewhere instead.
    bool is_slow(Index own, Index weight, double change, bool patient) {
        Index sweeps = place_.sweeps;
        if (change == 0.0) {
            finish(change, rule_.automatic ? static_cast<double>(sweeps) * ROUNDING_A_SWEEP : 0.0);
            return false;
        }
        if (!rule_.automatic) {
            if (change < rule_.epsilon)
                finish(change, expected_error(change, contraction(place_.changes, sweeps, rule_.rounding)));
            return false;
        }
        if (sweeps < WINDOW || sweeps % TESTED_EVERY != 0) return false;
        double worst = 0.0;
        for (int back = 0; back < TESTED_EVERY; back++)
            worst = std::max(worst, place_.changes[(sweeps - 1 - back) % WINDOW]);
        double rate = contraction(place_.changes, sweeps, rule_.rounding), error = expected_error(worst, rate);
        double wanted = rule_.epsilon * std::pow(FINER, static_cast<double>(place_.failed));
        bool met = worst < wanted && error < wanted;
        // Further sweeps would only stir the last digits.
        bool at_rest = worst < std::min(rule_.rounding, wanted) && !met;
        place_.met = met ? place_.met + 1 : 0;
        if (place_.met == 2 && rule_.rising && !patient) {
            error = proven_error(own, weight, std::max<Index>(64, sweeps / 2));
            if (error == INFINITE) {
                place_.failed++;
                place_.met = 0;
            }
        }
        if (place_.met == 2 || (at_rest && patient)) {
            place_.unmet += place_.met == 2 ? 0 : 1;
            finish(change, error);
            return false;
        }
        return !patient && (at_rest || place_.failed == MOST_FAILURES || contracts_slowly(error, rate));
    }

    // Returns whether many sweeps were made, and as many more will not do.
    bool contracts_slowly(double error, double rate) const {
        if (place_.sweeps < rule_.slow_after) return false;
        return !(rate < 1.0 && error * std::pow(rate, static_cast<double>(rule_.slow_after)) < rule_.epsilon);
    }

    // Bounds how far the solution lies above the values of a component.
    //
    // Values a little enlarged are an upper bound if some sweeps take them to what is nowhere above: Park's
    // induction, as in Hartmanns and Kaminski (2020), Optimistic Value Iteration. The bound is infinite if
    // `sweeps` of them do not.
    double proven_error(Index own, Index weight, Index sweeps) {
        Index begin = walk_.begin(own), size = walk_.end(own) - begin;
        const auto* found = walk_.found + begin;
        for (Index i = 0; i < size; i++) {
            double value = x_[found[i]];
            numbers_.before[i] = value;
            numbers_.guess[i] = rule_.absolute ? value + rule_.epsilon : value * (1.0 + rule_.epsilon);
            x_[found[i]] = numbers_.guess[i];
        }
        Index done = 0;
        bool rises = true;
        while (rises && done < sweeps) {
            sweep(own);
            double rounded = 1.0 + static_cast<double>(++done) * ROUNDING_A_SWEEP;
            rises = false;
            for (Index i = 0; i < size && !rises; i++) rises = numbers_.fresh[i] > numbers_.guess[i] * rounded;
        }
        for (Index i = 0; i < size; i++) x_[found[i]] = numbers_.before[i];
        count(done * weight);
        return rises ? INFINITE : rule_.epsilon;
    }

    void count(Index entries) {
        worked_ += entries;
        place_.work += static_cast<double>(entries);
    }

    // Leaves the present component, with its last change and its own error.
    //
    // Probabilities of leaving add up to 1 at most, so that values which are off by some amount or share,
    // all of them, move a solution by no more; shares multiply.
    void finish(double change, double error) {
        Index own = place_.component;
        double inherited = walk_.largest_below(own, numbers_.errors), both = error + inherited;
        if (!rule_.absolute && error > 0.0 && inherited > 0.0) both += error * inherited;
        numbers_.errors[own] = both;
        place_.change = std::max(place_.change, change);
        place_.component = own + 1;
        place_.sweeps = place_.met = place_.failed = 0;
    }

    const Walk& walk_;
    const PgRule& rule_;
    const PgNumbers& numbers_;
    PgPlace& place_;
    double* x_;
    Index worked_ = 0;
};

}  // namespace
}  // namespace prism_gpu

// Goes on with a walk until something is to be done elsewhere, or about `budget` entries were looked at;
// returns the reason.
extern "C" std::int32_t pg_solve_components(
    const PgSystem* system, const PgOrder* order, const PgRule* rule, const PgNumbers* numbers, PgPlace* place,
    std::int64_t budget) {
    return prism_gpu::with_walk(*system, *order, [&]<class Walk>(const Walk& walk) {
        if (system->minimise) return prism_gpu::Solve<Walk, true>(walk, *rule, *numbers, *place).go_on(budget);
        return prism_gpu::Solve<Walk, false>(walk, *rule, *numbers, *place).go_on(budget);
    });
}

// Finds the components of the states that have rows, each after those that it leads to; entries of value 0
// are edges too. found, bounds, component: as in PgOrder, with room for `states` (and one more for bounds).
// depth: room for `states`; takes, for each component, the most components of several states that follow
// each other from it on, itself included. Returns how many components there are, -1 if memory is too little.
extern "C" std::int64_t pg_components(
    const PgSystem* given, std::int64_t states, void* found_there, void* bounds_there, void* component_there,
    std::int64_t* depth) {
    using prism_gpu::Index;
    return prism_gpu::with_types(*given, [&]<class Matrix>(const prism_gpu::System<Matrix>& system) -> Index {
        using Column = typename Matrix::ColumnType;
        auto found = static_cast<Column*>(found_there), bounds = static_cast<Column*>(bounds_there);
        auto component = static_cast<Column*>(component_there);
        struct Edges {
            const prism_gpu::System<Matrix>& system;
            Index operator[](Index state) const { return system.matrix.begin(system.groups[state]); }
        };
        auto is_known = [&](Index state) { return system.groups[state] == system.groups[state + 1]; };
        auto successor = [&](Index edge) -> Index {
            Index state = system.matrix.columns[edge];
            return is_known(state) ? -1 : state;
        };
        Index count = 0, placed = 0;
        try {
            auto all = prism_gpu::components_of(states, Edges{system}, successor);
            bounds[0] = 0;
            for (std::size_t each = 0; each + 1 < all.firsts.size(); each++) {
                Index first = all.firsts[each], behind = all.firsts[each + 1];
                bool known = is_known(all.states[first]);
                for (Index at = first; at < behind; at++) {
                    component[all.states[at]] = static_cast<Column>(known ? -1 : count);
                    if (!known) found[placed++] = static_cast<Column>(all.states[at]);
                }
                if (!known) bounds[++count] = static_cast<Column>(placed);
            }
        } catch (const std::bad_alloc&) {
            return -1;
        }
        prism_gpu::Walk<Matrix> walk{system, count, found, bounds, component};
        for (Index own = 0; own < count; own++)
            depth[own] = walk.largest_below(own, depth) + (walk.end(own) - walk.begin(own) > 1 ? 1 : 0);
        return count;
    });
}
