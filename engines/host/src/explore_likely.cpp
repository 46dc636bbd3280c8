// Search for the likely states alone: what is reached with too small a probability is not gone on from.
//
// Source: the idea is that of Neupane, Myers, Madsen, Zheng, Zhang, "STAMINA: stochastic approximate
// model-checker for infinite-state analysis" (CAV 2019): each state hands on, when its choices are looked
// at, the probability with which it has been reached so far; that is done once, and only from states where
// it is not below the threshold. Here all states of a level hand theirs on in the order in which they were
// met, on one thread: which states are found depends on nothing else.
#include <memory>
#include <new>
#include <vector>

#include "explore_space.hpp"
#include "team.hpp"

namespace prism_gpu {

namespace {

enum Stage : std::uint8_t { MET, WAITING, LOOKED_AT };

// The states met so far, by number in the order in which they were met.
class Numbered {
   public:
    Numbered(int words, Index memory) : words_(words), left_(memory), slots_(START, NONE) {}

    Index count() const { return static_cast<Index>(stages.size()); }
    Index lacking() const { return lacking_; }
    const Word* state(Index number) const { return words_of_.data() + number * words_; }

    // Returns the number of a state, which is met now if it was not before; NONE if memory does not suffice.
    Index number(const Word* state) {
        if (2 * count() >= static_cast<Index>(slots_.size()) && !grow()) return NONE;
        Index slot = find(state);
        if (slots_[slot] != NONE) return slots_[slot];
        words_of_.insert(words_of_.end(), state, state + words_);
        stages.push_back(MET);
        reached.push_back(0.0);
        return slots_[slot] = count() - 1;
    }

    static constexpr Index NONE = -1;

    std::vector<std::uint8_t> stages;
    std::vector<double> reached;  // with what probability, since it was last handed on

   private:
    static constexpr Index START = 1 << 10;

    Index find(const Word* state) const {
        Index mask = static_cast<Index>(slots_.size()) - 1;
        Index slot = static_cast<Index>(hash_of(state, words_)) & mask;
        while (slots_[slot] != NONE && !same_state(words_of_.data() + slots_[slot] * words_, state, words_))
            slot = (slot + 1) & mask;
        return slot;
    }

    bool grow() {
        Index larger = 2 * static_cast<Index>(slots_.size());
        // For half as many states as there are slots, while the old arrays are copied.
        Index of_state = words_ * Index{sizeof(Word)} + Index{sizeof(double)} + 1;
        Index needed = larger * Index{sizeof(Index)} + larger / 2 * of_state * 3 / 2;
        if (needed > left_) {
            lacking_ = needed - left_;
            return false;
        }
        slots_.assign(larger, NONE);
        for (Index i = 0; i < count(); i++) slots_[find(state(i))] = i;
        return true;
    }

    int words_;
    Index left_, lacking_ = 0;
    std::vector<Word> words_of_;
    std::vector<Index> slots_;
};

// A transition of a state of a block.
struct Step {
    Index target;
    double weight;
    int place;
};

}  // namespace

class LikelySearch {
   public:
    LikelySearch(const PgProgram& program, double threshold, Index memory)
        : words_(program.code.words),
          chain_(program.kind != 2),
          threshold_(threshold),
          states_(words_, memory),
          expander_(program, {}),
          block_(Index{BLOCK} * words_) {}

    Status start(const Word* initial, Index count) {
        for (Index i = 0; i < count; i++) {
            Index number = states_.number(initial + i * words_);
            if (number == Numbered::NONE) return NO_MEMORY;
            // Each is gone on from, however many they are.
            states_.reached[number] = std::max(1.0 / static_cast<double>(count), threshold_);
            states_.stages[number] = WAITING;
            level_.push_back(number);
        }
        return MORE;
    }

    // Goes on for some seconds, or until the choices of `most` states were looked at.
    Status run(double seconds, Index most) {
        double end = seconds_of(CLOCK_MONOTONIC) + seconds;
        do {
            if (at_ == level_.size()) {
                level_.swap(next_);
                next_.clear();
                at_ = 0;
            }
            Index wanted = std::min<Index>({BLOCK, static_cast<Index>(level_.size() - at_), most - looked_at_});
            if (wanted <= 0) return DONE;
            Status status = look_at(static_cast<int>(wanted));
            if (status != DONE) return status;
        } while (seconds_of(CLOCK_MONOTONIC) < end);
        return MORE;
    }

    int words() const { return words_; }
    const Numbered& states() const { return states_; }
    Index looked_at() const { return looked_at_; }
    Index transitions() const { return transitions_; }
    Index choices() const { return choices_; }
    const Word* fault() const { return fault_ < 0 ? nullptr : block_.data() + fault_ * words_; }

   private:
    // Looks at the next states of the level.
    Status look_at(int count) {
        const Index* numbers = level_.data() + at_;
        for (int i = 0; i < count; i++) std::copy_n(states_.state(numbers[i]), words_, block_.data() + i * words_);
        double sums[BLOCK] = {};
        bool no_memory = false;
        std::int32_t choice = -1;
        steps_.clear();
        fault_ = expander_.expand(block_.data(), count, [&](const Transition& of) {
            if (of.choice != choice) choices_ += of.count;
            choice = of.choice;
            transitions_ += of.count;
            for (int i = 0; i < of.count && !no_memory; i++) {
                if (of.absent != nullptr && of.absent[i]) continue;
                Index target = states_.number(of.targets + i * words_);
                no_memory = target == Numbered::NONE;
                steps_.push_back({target, of.weights[i], of.places[i]});
                sums[of.places[i]] += of.weights[i];
            }
        });
        if (fault_ >= 0) return FAULT;
        if (no_memory) return NO_MEMORY;
        hand_on(numbers, count, sums);
        at_ += count;
        looked_at_ += count;
        return DONE;
    }

    // Hands the probabilities of the states of a block on, along each choice of an MDP the whole of it.
    void hand_on(const Index* numbers, int count, const double* sums) {
        double reached[BLOCK];
        for (int i = 0; i < count; i++) {
            states_.stages[numbers[i]] = LOOKED_AT;
            reached[i] = chain_ ? states_.reached[numbers[i]] / sums[i] : states_.reached[numbers[i]];
        }
        for (const Step& step : steps_) {
            if (states_.stages[step.target] == LOOKED_AT) continue;
            double& there = states_.reached[step.target];
            there += reached[step.place] * step.weight;
            if (states_.stages[step.target] == WAITING || there < threshold_) continue;
            states_.stages[step.target] = WAITING;
            next_.push_back(step.target);
        }
    }

    int words_;
    bool chain_;
    double threshold_;
    Numbered states_;
    StateExpander expander_;
    std::vector<Word> block_;
    std::vector<Step> steps_;
    std::vector<Index> level_, next_;  // numbers of states that wait
    std::size_t at_ = 0;
    Index looked_at_ = 0, transitions_ = 0, choices_ = 0;
    int fault_ = -1;
};

}  // namespace prism_gpu

// Begins a search for likely states, which may take `memory` bytes. The program's arrays must be kept.
extern "C" std::int32_t pg_explore_likely_start(
    const PgProgram* program, const std::uint64_t* initial, std::int64_t count, double threshold, std::int64_t memory,
    void** search) {
    using namespace prism_gpu;
    try {
        auto made = std::make_unique<LikelySearch>(*program, threshold, memory);
        if (made->start(initial, count) == NO_MEMORY) return NO_MEMORY;
        *search = made.release();
    } catch (const std::bad_alloc&) {
        return NO_MEMORY;
    }
    return DONE;
}

// Goes on searching for some seconds, or until the choices of `most` states were looked at.
//
// numbers: states met, of them not looked at, bytes that are lacking, and at the most how many transitions and
// choices there are. fault: a state with a fault, where there is one.
extern "C" std::int32_t pg_explore_likely(
    void* handle, double seconds, std::int64_t most, std::int64_t* numbers, std::uint64_t* fault) {
    using namespace prism_gpu;
    LikelySearch& search = *static_cast<LikelySearch*>(handle);
    Status status = NO_MEMORY;
    try {
        status = search.run(seconds, most);
    } catch (const std::bad_alloc&) {
    }
    numbers[0] = search.states().count();
    numbers[1] = search.states().count() - search.looked_at();
    numbers[2] = search.states().lacking();
    numbers[3] = search.transitions();
    numbers[4] = search.choices();
    if (search.fault() != nullptr) std::copy_n(search.fault(), search.words(), fault);
    return status;
}

// Writes the states in the order in which they were met, and which of them were not looked at.
extern "C" void pg_explore_likely_states(void* handle, std::uint64_t* states, std::uint8_t* unexplored) {
    using namespace prism_gpu;
    const LikelySearch& search = *static_cast<LikelySearch*>(handle);
    const Numbered& met = search.states();
    std::copy_n(met.state(0), met.count() * search.words(), states);
    for (Index i = 0; i < met.count(); i++) unexplored[i] = met.stages[i] != LOOKED_AT;
}

extern "C" void pg_explore_likely_release(void* handle) { delete static_cast<prism_gpu::LikelySearch*>(handle); }
