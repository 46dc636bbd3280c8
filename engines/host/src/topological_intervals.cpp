// Interval iteration component by component: both bounds, outwards by what rounding may be.
#include <algorithm>
#include <cmath>
#include <limits>

#include "walk.hpp"

// `IntervalRule` of engines/host/topological_intervals.py, which explains its fields.
struct PgIntervalRule {
    double slack, unit_roundoff, smallest, raised_by;
    std::int64_t limit, slow_after;
    std::int32_t absolute, monotonic_below, monotonic_above;
};

// `IntervalPlace` of engines/host/topological_intervals.py.
struct PgIntervalPlace {
    std::int64_t component, sweeps;         // the present component, and the sweeps made in it
    std::int64_t iterations;                // all evaluations of single states and sweeps so far
    std::int64_t at_rest;                   // components that came to rest before their bounds were close
    double width, rise, fall, crossing;     // what the last sweep did, as in engines.systems.two_sided.SweepRecord
    double width_before;                    // at the last look at the speed of the component,
    std::int64_t checked_at;                // which was after this many sweeps
    double worst, work;                     // the largest step in the wrong direction; entries looked at
};

// `HostIntervalWalk`: one number a component, a state, or a state of the largest component.
struct PgIntervalNumbers {
    const std::int64_t* how;
    const double* epsilons;
    double *lower, *upper, *fresh_lower, *fresh_upper;
};

namespace prism_gpu {
namespace {

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr int TESTED_EVERY = 512;  // sweeps after which the speed of a component is looked at

// Returns a part in relation to the whole; infinite where that is 0.
double share(double part, double whole) { return whole > 0.0 ? part / whole : INFINITE; }

template <class Walk, bool minimise>
class Narrowing {
   public:
    Narrowing(
        const Walk& walk, const PgIntervalRule& rule, const PgIntervalNumbers& numbers, PgIntervalPlace& place)
        : walk_(walk), rule_(rule), numbers_(numbers), place_(place), lower_(numbers.lower), upper_(numbers.upper) {}

    Reason go_on(Index budget) {
        while (place_.component < walk_.components) {
            Index own = place_.component, weight = walk_.weight(own);
            if (numbers_.how[own] == ELSEWHERE) return OUTSIDE;
            if (walk_.end(own) - walk_.begin(own) == 1) {
                count(weight);
                place_.component++;
                if (crosses(walk_.found[walk_.begin(own)])) return CROSSED;
                if (worked_ > budget) return OUT_OF_BUDGET;
                continue;
            }
            if (place_.sweeps == 0) begin(own);
            while (place_.component == own) {
                if (worked_ > budget) return OUT_OF_BUDGET;
                if (place_.sweeps >= rule_.limit) return LIMIT;
                bool moved = sweep(own);
                place_.sweeps++;
                count(weight);
                place_.worst = std::max({place_.worst, place_.rise, place_.fall});
                if (place_.crossing > 0.0) return CROSSED;
                bool close = place_.width < numbers_.epsilons[own] || place_.width == 0.0;
                if (close || !moved) {
                    place_.component++;
                    place_.sweeps = 0;
                    place_.at_rest += close ? 0 : 1;
                } else if (is_slow(own)) {
                    return SLOW;
                }
            }
        }
        return DONE;
    }

   private:
    // Evaluates a component of one state; returns whether its bounds cross.
    bool crosses(Index state) {
        lower_[state] = best_row<false>(state);
        upper_[state] = best_row<true>(state);
        if (!(lower_[state] > upper_[state])) return false;
        place_.crossing = lower_[state] - upper_[state];
        return true;
    }

    // Raises the first upper values of a component of several states.
    void begin(Index own) {
        place_.width_before = INFINITE;
        place_.checked_at = 0;
        for (Index at = walk_.begin(own); at < walk_.end(own); at++) upper_[walk_.found[at]] += rule_.raised_by;
    }

    // Returns a bound of a state's best row, from such bounds of its successors.
    template <bool upwards>
    double best_row(Index state) const {
        const auto& matrix = walk_.system.matrix;
        const double* x = upwards ? upper_ : lower_;
        double best = minimise ? INFINITE : -INFINITE;
        Index behind = walk_.system.groups[state + 1];
        for (Index row = walk_.system.groups[state]; row < behind; row++) {
            double total = walk_.system.offset ? walk_.system.offset[row] : 0.0;
            for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++)
                total += matrix.value(entry) * x[matrix.columns[entry]];
            double length = static_cast<double>(matrix.end(row) - matrix.begin(row));
            double rounding = (length + rule_.slack) * rule_.unit_roundoff, underflow = (length + 1.0) * rule_.smallest;
            total *= upwards ? 1.0 + rounding : 1.0 - rounding;
            total += upwards ? underflow : -underflow;
            best = (minimise ? total < best : total > best) ? total : best;
        }
        return upwards ? best : std::max(best, 0.0);
    }

    // Makes one sweep of both bounds of a component, from those before it; returns whether any moved.
    bool sweep(Index own) {
        Index begin = walk_.begin(own), end = walk_.end(own);
        bool moved = false;
        double width = 0.0, rise = 0.0, fall = 0.0, crossing = 0.0;
        for (Index at = begin; at < end; at++) {
            Index state = walk_.found[at];
            double low = lower_[state], up = upper_[state];
            double new_low = best_row<false>(state), new_up = best_row<true>(state);
            if (new_up > up) {
                rise = std::max(rise, share(new_up - up, up));
                if (rule_.monotonic_above) new_up = up;
            }
            if (new_low < low) {
                fall = std::max(fall, share(low - new_low, low));
                if (rule_.monotonic_below) new_low = low;
            }
            moved = moved || new_low != low || new_up != up;
            double apart = new_up - new_low;
            if (apart < 0.0) crossing = std::max(crossing, -apart);
            else if (apart > 0.0) width = std::max(width, rule_.absolute ? apart : share(apart, new_low));
            numbers_.fresh_lower[at - begin] = new_low;
            numbers_.fresh_upper[at - begin] = new_up;
        }
        for (Index at = begin; at < end; at++) {
            lower_[walk_.found[at]] = numbers_.fresh_lower[at - begin];
            upper_[walk_.found[at]] = numbers_.fresh_upper[at - begin];
        }
        place_.width = width;
        place_.rise = rise;
        place_.fall = fall;
        place_.crossing = crossing;
        return moved;
    }

    // Returns whether many sweeps were made, and as many more will not do.
    bool is_slow(Index own) {
        Index sweeps = place_.sweeps;
        if (rule_.slow_after <= 0 || numbers_.how[own] == PATIENTLY || sweeps % TESTED_EVERY != 0) return false;
        double before = place_.width_before, since = static_cast<double>(sweeps - place_.checked_at);
        place_.width_before = place_.width;
        place_.checked_at = sweeps;
        if (sweeps < rule_.slow_after || !(before < INFINITE)) return false;
        if (place_.width >= before) return true;
        double rate = std::pow(place_.width / before, 1.0 / since);
        return place_.width * std::pow(rate, static_cast<double>(rule_.slow_after)) >= numbers_.epsilons[own];
    }

    // Counts an iteration over this many entries.
    void count(Index entries) {
        place_.iterations++;
        worked_ += entries;
        place_.work += static_cast<double>(entries);
    }

    const Walk& walk_;
    const PgIntervalRule& rule_;
    const PgIntervalNumbers& numbers_;
    PgIntervalPlace& place_;
    double *lower_, *upper_;
    Index worked_ = 0;
};

}  // namespace
}  // namespace prism_gpu

// Goes on with a walk until something is to be done elsewhere, or about `budget` entries were looked at;
// returns the reason.
extern "C" std::int32_t pg_narrow_components(
    const PgSystem* system, const PgOrder* order, const PgIntervalRule* rule, const PgIntervalNumbers* numbers,
    PgIntervalPlace* place, std::int64_t budget) {
    return prism_gpu::with_walk(*system, *order, [&]<class Walk>(const Walk& walk) {
        if (system->minimise) return prism_gpu::Narrowing<Walk, true>(walk, *rule, *numbers, *place).go_on(budget);
        return prism_gpu::Narrowing<Walk, false>(walk, *rule, *numbers, *place).go_on(budget);
    });
}
