// Elimination without subtraction: x = b + P x and y = c + y P of the transient states of a chain.
//
// Grassmann, Taksar, Heyman (1985): Regenerative analysis and steady state distributions for Markov
// chains; O'Cinneide (1993); Alfa, Xue, Ye (2002): Accurate computation of the smallest eigenvalue of
// a diagonally dominant M-matrix. State k is taken out by redirecting what leads to it:
//     w_ij += w_ik w_kj / s_k,    s_k = what leaves k = the sum of its other entries.
// All terms are positive, so that no digit is cancelled, however rarely a set of states is left.
//
// Components are solved each by itself, those that others lead to first; what leads from one
// component to another is not eliminated into either. Within one, states are eliminated in the order
// of minimum degree; the factors have the pattern of the symmetrised graph.
//
// Error. Each value is a quotient of sums of products with one weight of each state (matrix-tree
// theorem), so weights of r rows that are off by a factor 1 + e change it by at most (1 + e)^2r.
// Eliminating k changes the rows that lead to k, each entry by four roundings (s_k is summed with
// compensation): 8 roundings an entry of the lower factor. Solving adds one an entry at most. That
// the weights themselves were rounded when the model was made is counted as well, twice a state.
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "components.hpp"
#include "ordering.hpp"
#include "wide.hpp"

namespace prism_gpu {
namespace {


using Place = std::int32_t;

constexpr double ENTRY_ROUNDINGS = 10.0, STATE_ROUNDINGS = 24.0;
constexpr int RANGE_EXPONENT = -480;  // the product of two numbers above 2^-480 is a normal one

enum Status : std::int32_t { DONE = 0, GOES_ON = 1, TOO_DEAR = 2, NEVER_LEFT = 3, NO_MEMORY = 4 };

// A sum of numbers that are not negative, right to one rounding (Neumaier 1974).
template <class Real> class Sum {
public:
    void add(Real term) {
        Real after = sum_ + term;
        rest_ += sum_ >= term ? (sum_ - after) + term : (term - after) + sum_;
        sum_ = after;
    }
    Real value() const { return sum_ + rest_; }

private:
    Real sum_ = 0, rest_ = 0;
};

struct Chain {
    Index size;
    const Index* offsets;
    const Index* columns;   // those from `size` on are outside
    const double* values;   // probabilities or rates; the diagonal is not read
    const double* leaving;  // what else leaves from each state
};

class Elimination {
public:
    virtual ~Elimination() = default;
    virtual Status advance(double operations) = 0;
    virtual void values(const double* right, const double* rest, double* high, double* low) const = 0;
    virtual void visits(const double* given, double* made) const = 0;
    virtual void shares(const double* given, const Index* group, Index groups, double* made, double* rest) const = 0;
    double error = 0.0;       // relative, of every value, that of the given numbers included
    double rounding = 0.0;    // without that: what elimination itself has added
    double entries = 0.0;     // of a factor
    double operations = 0.0;  // that all of it takes
    bool in_range = true;     // whether no product can have left the normal numbers
};

template <class Real> class Eliminated final : public Elimination {
public:
    Eliminated(const Chain& chain, const Cost& limit) : chain_(chain), size_(chain.size) {
        auto successor = [&](Index entry) { return chain.values[entry] > 0.0 && chain.columns[entry] < size_ ? chain.columns[entry] : Index(-1); };
        Components found = components_of(size_, chain.offsets, successor);
        states_ = std::move(found.states);
        firsts_ = std::move(found.firsts);
        block_ = std::move(found.of);
        order_states(limit);
        if (too_dear_) return;
        position_.resize(size_);
        for (Index i = 0; i < size_; i++) position_[states_[i]] = i;
        find_pattern();
        take_rows();
        bound_error();
    }

    Status advance(double operations) override {
        if (too_dear_) return TOO_DEAR;
        double before = made_;
        for (; next_ < size_; next_++) {
            if (made_ - before > operations) return GOES_ON;  // at once where it is negative
            if (!eliminate_row(next_)) return NEVER_LEFT;
        }
        in_range = smallest_ > std::ldexp(1.0, RANGE_EXPONENT);
        return DONE;
    }

    // x = b + P x
    void values(const double* right, const double* rest, double* high, double* low) const override {
        std::vector<Real> x(size_);
        for (Index block = 0; block + 1 < static_cast<Index>(firsts_.size()); block++) {
            for (Index i = firsts_[block]; i < firsts_[block + 1]; i++) {
                Real sum = right[states_[i]];
                if (rest) sum += rest[states_[i]];
                sum *= scale_[i];
                for (Index e = outer_.first(i); e < outer_.first(i + 1); e++) sum += outer_.value(e) * x[outer_.column(e)];
                for (Index e = lower_offsets_[i]; e < lower_offsets_[i + 1]; e++)
                    sum += lower_[e] * x[lower_columns_[e]];
                x[i] = sum / pivots_[i];
            }
            for (Index i = firsts_[block + 1] - 1; i >= firsts_[block]; i--) {
                for (Index e = upper_offsets_[i]; e < upper_offsets_[i + 1]; e++) x[i] += upper_[e] * x[upper_columns_[e]];
            }
        }
        for (Index i = 0; i < size_; i++) {
            double nearest = static_cast<double>(x[i]);
            high[states_[i]] = nearest;
            if (low) low[states_[i]] = static_cast<double>(x[i] - static_cast<Real>(nearest));
        }
    }

    // y = c + y P
    void visits(const double* given, double* made) const override {
        std::vector<Real> y = visited(given);
        for (Index i = 0; i < size_; i++) made[states_[i]] = static_cast<double>(y[i]);
    }

    // The same, divided by what the visits to the states of a group and one more add up to.
    void shares(const double* given, const Index* group, Index groups, double* made, double* rest) const override {
        std::vector<Real> y = visited(given);
        std::vector<Sum<Real>> totals(groups);
        for (auto& total : totals) total.add(1);
        for (Index i = 0; i < size_; i++) totals[group[states_[i]]].add(y[i]);
        for (Index i = 0; i < size_; i++) made[states_[i]] = static_cast<double>(y[i] / totals[group[states_[i]]].value());
        for (Index g = 0; g < groups; g++) rest[g] = static_cast<double>(Real(1) / totals[g].value());
    }

private:
    struct Rows {
        std::vector<Index> offsets{0};
        std::vector<Place> columns;
        std::vector<Real> values;
        Index first(Index row) const { return offsets[row]; }
        Index column(Index entry) const { return columns[entry]; }
        Real value(Index entry) const { return values[entry]; }
        void add(Index column, Real value) { columns.push_back(static_cast<Place>(column)); values.push_back(value); }
        void close() { offsets.push_back(static_cast<Index>(columns.size())); }
    };

    // Puts the states of each component into the order of minimum degree.
    void order_states(const Cost& limit) {
        std::vector<Index> place(size_);
        Cost left = limit;
        for (std::size_t block = 0; block + 1 < firsts_.size(); block++) {
            Index first = firsts_[block], count = firsts_[block + 1] - first;
            if (count == 1) continue;
            for (Index i = 0; i < count; i++) place[states_[first + i]] = i;
            MinimumDegree found(neighbours(first, count, place), left);
            if (!found.fits) {
                too_dear_ = true;
                return;
            }
            left.entries -= found.cost.entries;
            left.operations -= found.cost.operations;
            operations += found.cost.operations;
            std::vector<Index> before(states_.begin() + first, states_.begin() + first + count);
            for (Index i = 0; i < count; i++) states_[first + i] = before[found.order[i]];
        }
    }

    bool inside(Index state, Index entry) const {
        Index other = chain_.columns[entry];
        return other != state && other < size_ && chain_.values[entry] > 0.0 && block_[other] == block_[state];
    }

    // Of each state of a component, the others that it leads to or that lead to it.
    Lists neighbours(Index first, Index count, const std::vector<Index>& place) const {
        Lists near(count);
        for (Index i = 0; i < count; i++) {
            Index state = states_[first + i];
            for (Index e = chain_.offsets[state]; e < chain_.offsets[state + 1]; e++) {
                if (!inside(state, e)) continue;
                Index other = place[chain_.columns[e]];
                near[i].push_back(other);
                near[other].push_back(i);
            }
        }
        for (auto& list : near) {
            std::sort(list.begin(), list.end());
            list.erase(std::unique(list.begin(), list.end()), list.end());
        }
        return near;
    }

    // Row k of the upper factor has the later states that k or a state eliminated into it leads to or
    // comes from; the lower factor has the transposed pattern.
    void find_pattern() {
        Lists starts(size_), children(size_);
        for (Index i = 0; i < size_; i++) {
            Index state = states_[i];
            for (Index e = chain_.offsets[state]; e < chain_.offsets[state + 1]; e++) {
                if (!inside(state, e)) continue;
                Index other = position_[chain_.columns[e]];
                starts[std::min(i, other)].push_back(std::max(i, other));
            }
        }
        std::vector<Index> mark(size_, -1), counts(size_ + 1, 0);
        for (Index k = 0; k < size_; k++) {
            Index first = static_cast<Index>(upper_columns_.size()), parent = size_;
            mark[k] = k;
            auto take = [&](Index column) {
                if (column <= k || mark[column] == k) return;
                mark[column] = k;
                upper_columns_.push_back(static_cast<Place>(column));
                counts[column + 1]++;
                parent = std::min(parent, column);
            };
            for (Index column : starts[k]) take(column);
            starts[k] = {};
            for (Index child : children[k]) {
                for (Index e = upper_offsets_[child]; e < upper_offsets_[child + 1]; e++) take(upper_columns_[e]);
            }
            if (parent < size_) children[parent].push_back(k);
            std::sort(upper_columns_.begin() + first, upper_columns_.end());
            upper_offsets_.push_back(static_cast<Index>(upper_columns_.size()));
        }
        lower_offsets_ = counts;
        for (Index i = 0; i < size_; i++) lower_offsets_[i + 1] += lower_offsets_[i];
        std::vector<Index> at(lower_offsets_.begin(), lower_offsets_.end() - 1);
        lower_columns_.resize(upper_columns_.size());
        for (Index k = 0; k < size_; k++) {
            for (Index e = upper_offsets_[k]; e < upper_offsets_[k + 1]; e++) lower_columns_[at[upper_columns_[e]]++] = static_cast<Place>(k);
        }
        upper_.assign(upper_columns_.size(), 0);
        lower_.assign(lower_columns_.size(), 0);
        entries = static_cast<double>(upper_columns_.size());
    }

    // Rows are scaled by powers of two, and split into what stays in the component and what leaves it.
    void take_rows() {
        pivots_.assign(size_, 0);
        scale_.assign(size_, 1);
        leak_.assign(size_, 0);
        work_.assign(size_, 0);
        for (Index i = 0; i < size_; i++) {
            Index state = states_[i];
            double largest = chain_.leaving[state];
            for (Index e = chain_.offsets[state]; e < chain_.offsets[state + 1]; e++) {
                if (chain_.columns[e] != state) largest = std::max(largest, chain_.values[e]);
            }
            int exponent = 0;
            if (largest > 0.0) std::frexp(largest, &exponent);
            scale_[i] = power_of_two(-exponent);
            Sum<Real> leaves;
            leaves.add(static_cast<Real>(chain_.leaving[state]) * scale_[i]);
            for (Index e = chain_.offsets[state]; e < chain_.offsets[state + 1]; e++) {
                Index other = chain_.columns[e];
                Real value = static_cast<Real>(chain_.values[e]) * scale_[i];
                if (other == state || !(chain_.values[e] > 0.0)) continue;
                note(value);
                if (inside(state, e)) {
                    inner_.add(position_[other], value);
                } else {
                    if (other < size_) outer_.add(position_[other], value);
                    leaves.add(value);
                }
            }
            inner_.close();
            outer_.close();
            leak_[i] = leaves.value();
            note(leak_[i]);
        }
    }

    static Real power_of_two(int exponent) {
        Real power = 1, factor = exponent < 0 ? Real(0.5) : Real(2);
        for (int left = exponent < 0 ? -exponent : exponent; left > 0; left >>= 1, factor *= factor) {
            if (left & 1) power *= factor;
        }
        return power;
    }

    void note(Real value) {
        if (value > 0 && value < smallest_) smallest_ = value < Real(std::numeric_limits<double>::min()) ? 0.0 : static_cast<double>(value);
    }

    bool eliminate_row(Index i) {
        for (Index e = inner_.first(i); e < inner_.first(i + 1); e++) work_[inner_.column(e)] += inner_.value(e);
        Real leak = leak_[i];
        for (Index e = lower_offsets_[i]; e < lower_offsets_[i + 1]; e++) {
            Index k = lower_columns_[e];
            Real share = work_[k];
            work_[k] = 0;
            lower_[e] = share;
            if (share == 0) continue;
            note(share);
            leak += share * leak_[k];
            Index behind = upper_offsets_[k + 1];
            made_ += static_cast<double>(behind - upper_offsets_[k]);
            for (Index f = upper_offsets_[k]; f < behind; f++) work_[upper_columns_[f]] += share * upper_[f];
        }
        work_[i] = 0;
        Sum<Real> leaves;
        leaves.add(leak);
        for (Index e = upper_offsets_[i]; e < upper_offsets_[i + 1]; e++) leaves.add(work_[upper_columns_[e]]);
        Real pivot = leaves.value();
        if (!(pivot > 0)) return false;
        pivots_[i] = pivot;
        note(pivot);
        leak_[i] = leak / pivot;
        note(leak_[i]);
        for (Index e = upper_offsets_[i]; e < upper_offsets_[i + 1]; e++) {
            upper_[e] = work_[upper_columns_[e]] / pivot;
            work_[upper_columns_[e]] = 0;
            note(upper_[e]);
        }
        return true;
    }

    void bound_error() {
        std::vector<double> below(firsts_.size(), 0.0);
        double largest = 0.0;
        for (std::size_t block = 0; block + 1 < firsts_.size(); block++) {
            double longest = 0.0, inherited = 0.0;
            for (Index i = firsts_[block]; i < firsts_[block + 1]; i++) {
                longest = std::max(longest, static_cast<double>(outer_.first(i + 1) - outer_.first(i)));
                for (Index e = outer_.first(i); e < outer_.first(i + 1); e++)
                    inherited = std::max(inherited, below[block_[states_[outer_.column(e)]]]);
            }
            Index first = firsts_[block], behind = firsts_[block + 1];
            double of_factor = static_cast<double>(upper_offsets_[behind] - upper_offsets_[first]);
            double states = static_cast<double>(behind - first);
            below[block] = inherited + ENTRY_ROUNDINGS * of_factor + STATE_ROUNDINGS * states + longest;
            largest = std::max(largest, below[block]);
        }
        bool wide = sizeof(Real) > sizeof(double);
        // What a wide solution is off by is that it is rounded in the end, and its input was.
        double given = 4.0 * static_cast<double>(size_) + 2.0;
        error = std::ldexp(wide ? given : largest, -53);
        rounding = std::ldexp(largest, wide ? WIDE_EXPONENT : -53);
    }

    std::vector<Real> visited(const double* given) const {
        std::vector<Real> y(size_);
        for (Index i = 0; i < size_; i++) y[i] = given[states_[i]];
        for (Index block = static_cast<Index>(firsts_.size()) - 2; block >= 0; block--) {
            for (Index i = firsts_[block]; i < firsts_[block + 1]; i++) {
                for (Index e = upper_offsets_[i]; e < upper_offsets_[i + 1]; e++) y[upper_columns_[e]] += y[i] * upper_[e];
            }
            for (Index i = firsts_[block + 1] - 1; i >= firsts_[block]; i--) {
                y[i] /= pivots_[i];
                for (Index e = lower_offsets_[i]; e < lower_offsets_[i + 1]; e++) y[lower_columns_[e]] += y[i] * lower_[e];
            }
            for (Index i = firsts_[block]; i < firsts_[block + 1]; i++) {
                for (Index e = outer_.first(i); e < outer_.first(i + 1); e++) y[outer_.column(e)] += y[i] * outer_.value(e);
            }
        }
        for (Index i = 0; i < size_; i++) y[i] *= scale_[i];
        return y;
    }

    Chain chain_{};
    Index size_, next_ = 0;
    bool too_dear_ = false;
    double made_ = 0.0, smallest_ = 1.0;
    std::vector<Index> states_, firsts_, block_, position_;
    Rows inner_, outer_;
    std::vector<Index> upper_offsets_{0}, lower_offsets_;
    std::vector<Place> upper_columns_, lower_columns_;
    std::vector<Real> upper_, lower_, pivots_, leak_, work_, scale_;
};

}  // namespace
}  // namespace prism_gpu

using prism_gpu::Elimination;

// Begins an elimination: orders the states and finds the pattern of the factors. The arrays must stay
// until it is released. A status as above is returned; there is an elimination with DONE alone.
extern "C" std::int32_t pg_eliminate(
    std::int64_t size, const std::int64_t* offsets, const std::int64_t* columns, const double* values,
    const double* leaving, std::int32_t wide, double most_entries, double most_operations, void** made) {
    using namespace prism_gpu;
    try {
        Chain chain{size, offsets, columns, values, leaving};
        Cost limit{most_entries, most_operations};
        std::unique_ptr<Elimination> found;
        if (wide) found = std::make_unique<Eliminated<Wide>>(chain, limit);
        else found = std::make_unique<Eliminated<double>>(chain, limit);
        Status status = found->advance(-1.0);
        if (status != GOES_ON && status != DONE) return status;
        *made = found.release();
        return DONE;
    } catch (const std::bad_alloc&) {
        return NO_MEMORY;
    }
}

// Goes on for about so many multiplications.
extern "C" std::int32_t pg_advance(void* made, double operations) {
    return static_cast<Elimination*>(made)->advance(operations);
}

// What is known of it: relative error of each value, entries of a factor, operations, in range or
// not, and what elimination itself has added to the error.
extern "C" void pg_numbers(const void* made, double* numbers) {
    auto* elimination = static_cast<const Elimination*>(made);
    numbers[0] = elimination->error;
    numbers[1] = elimination->entries;
    numbers[2] = elimination->operations;
    numbers[3] = elimination->in_range ? 1.0 : 0.0;
    numbers[4] = elimination->rounding;
}

// x = b + P x, b = right + rest where that is given: the nearest doubles and, where `low` is given,
// what they are off by.
extern "C" std::int32_t pg_values(
    const void* made, const double* right, const double* rest, double* high, double* low) {
    try {
        static_cast<const Elimination*>(made)->values(right, rest, high, low);
        return prism_gpu::DONE;
    } catch (const std::bad_alloc&) {
        return prism_gpu::NO_MEMORY;
    }
}

extern "C" std::int32_t pg_visits(const void* made, const double* given, double* found) {
    try {
        static_cast<const Elimination*>(made)->visits(given, found);
        return prism_gpu::DONE;
    } catch (const std::bad_alloc&) {
        return prism_gpu::NO_MEMORY;
    }
}

// As pg_visits, each group of states divided by what its visits and one more add up to; what is left
// of each group is that of the one more.
extern "C" std::int32_t pg_shares(
    const void* made, const double* given, const std::int64_t* group, std::int64_t groups, double* found,
    double* rest) {
    try {
        static_cast<const Elimination*>(made)->shares(given, group, groups, found, rest);
        return prism_gpu::DONE;
    } catch (const std::bad_alloc&) {
        return prism_gpu::NO_MEMORY;
    }
}

extern "C" void pg_release(void* made) { delete static_cast<Elimination*>(made); }
