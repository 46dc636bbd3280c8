// The choices of states, evaluated a block at a time.
//
// engines/program/order.py says in which order they come, engines/host/exploring/tables.py how commands
// are laid out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "explore_code.hpp"

// `HostProgram` of engines/host/exploring/tables.py. A list of lists is its items one after the other,
// and where each list starts.
struct PgProgram {
    PgCode code;
    std::int32_t kind;                 // 0 a DTMC, 1 a CTMC, 2 an MDP
    std::int32_t sums_checked;         // whether probabilities have to sum to 1
    std::int32_t guards_end;           // the instructions up to here compute the masks of guards
    std::int32_t masks;
    std::int32_t most_factors;         // of any unit
    std::int32_t units;
    const std::int32_t* commands;      // a row each: mask of the guard, begin and end of its section,
                                       // whether weights are to be checked
    const std::int32_t* update_starts;      // of each command
    const std::int32_t* weights;            // a row an update: register, whether it may be 0
    const std::int32_t* assignment_starts;  // of each update
    const std::int32_t* assignments;        // a row each: variable, register, type as of constants,
                                            // whether its range is to be checked
    const std::int32_t* highs;              // the greatest value of each variable
    const std::int32_t* unit_actions;       // -1 for none
    const std::int32_t* factor_starts;      // of each unit
    const std::int32_t* command_starts;     // of each factor
    const std::int32_t* factor_commands;
};

namespace prism_gpu {

// A transition that some states of a block have.
struct Transition {
    int count;                     // states that have it
    const std::uint16_t* places;   // which, within the block
    const Word* targets;           // packed, one state after the other
    const double* weights;
    const std::uint8_t* absent;    // 1 where a weight is 0; null where none can be
    std::int32_t choice;           // of the same choice have the same number
    std::int32_t action;
    std::uint32_t key;             // the same for the same commands and updates, in all blocks
};

// Evaluates the commands of a program; each thread has one of its own.
class Expander {
   public:
    explicit Expander(const PgProgram& program)
        : program_(program), words_(program.code.words), machine_(program.code, program.most_factors, program.masks) {
        int updates = most_updates();
        levels_.resize(program.most_factors);
        for (Level& level : levels_) {
            level.set.resize(Index{updates} * words_ * BLOCK);
            level.kept.resize(Index{updates} * words_);
        }
        chosen_.resize(program.most_factors);
        states_.resize(words_ * BLOCK);
        for (Combined* combined : {&shared_, &whole_}) {
            combined->weights.resize(COMBINED);
            combined->targets.resize(COMBINED * words_);
            combined->absent.resize(COMBINED);
            combined->keys.resize(COMBINED);
        }
        failed_.resize(BLOCK);
        sums_.resize(BLOCK);
    }

    // Calls `take(transition)` for each transition of `count` states, those of a state in PRISM's order.
    // Returns the least state of the block where an expression or a command has a fault, or -1.
    template <class Take>
    int expand(const Word* states, int count, Take take) {
        fault_ = -1;
        block_ = states;
        std::fill_n(failed_.data(), count, std::uint8_t{0});
        machine_.run(0, program_.guards_end, states, count, 0, failed_.data());
        for (int i = 0; i < count; i++)
            if (failed_[i]) blame_place(i);
        choice_ = 0;
        Mask all = Mask::first(count);
        for (int unit = 0; unit < program_.units; unit++) {
            int first = program_.factor_starts[unit], last = program_.factor_starts[unit + 1];
            action_ = program_.unit_actions[unit];
            if (first + 1 == last || all_move(first, last)) choose(first, last, last, all, take);
        }
        return fault_;
    }

    const Machine& machine() const { return machine_; }

   private:
    // What a factor contributes to the choice at hand.
    struct Level {
        std::vector<Word> set;    // the bits that each update sets, a word of all states after the other
        std::vector<Word> kept;   // the bits that each update keeps
        int picked = 0;           // the update at hand
    };

    // Combinations of an update of each of some factors: of each, all states of the block.
    struct Combined {
        std::vector<double> weights;
        std::vector<Word> targets;
        std::vector<std::uint8_t> absent;   // 1 where a weight is 0
        std::vector<std::uint32_t> keys;
    };

    int most_updates() const {
        int most = 0, commands = 0;
        for (int i = 0, end = program_.command_starts[program_.factor_starts[program_.units]]; i < end; i++)
            commands = std::max(commands, program_.factor_commands[i] + 1);
        for (int i = 0; i < commands; i++)
            most = std::max(most, program_.update_starts[i + 1] - program_.update_starts[i]);
        return most;
    }

    const std::int32_t* command(int number) const { return program_.commands + 4 * Index{number}; }

    const Mask& guard(int number) const { return machine_.mask(command(number)[0]); }

    // Whether each factor has a command in some state of the block, be it not the same.
    bool all_move(int first, int last) const {
        for (int factor = first; factor < last; factor++) {
            bool moves = false;
            for (int i = program_.command_starts[factor]; !moves && i < program_.command_starts[factor + 1]; i++)
                moves = guard(program_.factor_commands[i]).any();
            if (!moves) return false;
        }
        return true;
    }

    // Chooses a command for the factors before `factor`, that of the first changing fastest.
    template <class Take>
    void choose(int first, int last, int factor, const Mask& states, Take& take) {
        if (factor == first) return evaluate(first, last, states, take);
        for (int i = program_.command_starts[factor - 1]; i < program_.command_starts[factor]; i++) {
            int number = program_.factor_commands[i];
            Mask both = states.both(guard(number));
            if (!both.any()) continue;
            chosen_[factor - 1 - first] = number;
            choose(first, last, factor - 1, both, take);
        }
    }

    template <class Take>
    void evaluate(int first, int last, const Mask& states, Take& take) {
        count_ = states.places(places_);
        for (int i = 0; i < count_; i++)
            std::copy_n(block_ + places_[i] * words_, words_, states_.data() + i * words_);
        int factors = last - first;
        for (int level = 0; level < factors; level++) prepare(level);
        combine(factors, take);
        choice_++;
    }

    void blame(int chosen) { blame_place(places_[chosen]); }

    void blame_place(int place) {
        if (fault_ < 0 || before(block_ + place * words_, block_ + fault_ * words_, words_)) fault_ = place;
    }

    // Evaluates the command of a factor: its weights, and the bits that its updates set.
    void prepare(int level) {
        const std::int32_t* row = command(chosen_[level]);
        std::fill_n(failed_.data(), count_, std::uint8_t{0});
        machine_.run(row[1], row[2], states_.data(), count_, level, failed_.data());
        for (int i = 0; i < count_; i++)
            if (failed_[i]) blame(i);
        int begin = program_.update_starts[chosen_[level]], end = program_.update_starts[chosen_[level] + 1];
        if (row[3]) check_weights(level, begin, end);
        for (int update = begin; update < end; update++) assign(level, update - begin, update);
    }

    void check_weights(int level, int begin, int end) {
        std::fill_n(sums_.data(), count_, 0.0);
        for (int update = begin; update < end; update++) {
            const double* weight = machine_.doubles(level, program_.weights[2 * update]);
            for (int i = 0; i < count_; i++) {
                if (!(weight[i] >= 0.0) || std::isinf(weight[i])) blame(i);
                sums_[i] += weight[i];
            }
        }
        for (int i = 0; i < count_; i++) {
            bool is_one = std::fabs((sums_[i] - 1.0) / sums_[i]) < SUM_TOLERANCE;
            if (sums_[i] == 0.0 || (program_.sums_checked && !is_one)) blame(i);
        }
    }

    void assign(int level, int number, int update) {
        Level& of = levels_[level];
        Word* set = of.set.data() + Index{number} * words_ * BLOCK;
        Word* kept = of.kept.data() + Index{number} * words_;
        std::fill_n(kept, words_, ~Word{0});
        for (int word = 0; word < words_; word++) std::fill_n(set + word * BLOCK, count_, Word{0});
        const double* weight =
            program_.weights[2 * update + 1] ? machine_.doubles(level, program_.weights[2 * update]) : nullptr;
        for (int i = program_.assignment_starts[update]; i < program_.assignment_starts[update + 1]; i++) {
            const std::int32_t* row = program_.assignments + 4 * Index{i};
            const std::int32_t* field = program_.code.fields + 4 * Index{row[0]};
            Word* to = set + field[0] * BLOCK;
            Word mask = (Word{1} << field[2]) - 1;
            kept[field[0]] &= ~(mask << field[1]);
            if (row[2] == 0) {
                const std::uint8_t* value = machine_.bools(level, row[1]);
                for (int lane = 0; lane < count_; lane++) to[lane] |= Word{value[lane]} << field[1];
                continue;
            }
            const std::int32_t* value = machine_.ints(level, row[1]);
            auto low = static_cast<std::uint32_t>(field[3]);
            for (int lane = 0; lane < count_; lane++)
                to[lane] |= Word{static_cast<std::uint32_t>(value[lane]) - low} << field[1];
            if (!row[3]) continue;
            std::int32_t high = program_.highs[row[0]];
            for (int lane = 0; lane < count_; lane++)
                if ((value[lane] < field[3] || value[lane] > high) && (weight == nullptr || weight[lane] != 0.0))
                    blame(lane);
        }
    }

    // Brings the updates of the factors together. Those of the first factors, as many as there is room
    // for, are combined at once: what two combinations share is computed once. For the updates of the
    // others, all of these are computed again.
    template <class Take>
    void combine(int factors, Take& take) {
        may_be_absent_ = false;
        for (int level = 0; level < factors; level++)
            for (int i = 0; i < updates(level); i++) may_be_absent_ |= program_.weights[2 * (first_update(level) + i) + 1] != 0;
        std::fill_n(shared_.weights.data(), count_, 1.0);
        std::copy_n(states_.data(), count_ * words_, shared_.targets.data());
        std::fill_n(shared_.absent.data(), count_, std::uint8_t{0});
        shared_.keys[0] = 0;
        Index combinations = 1;
        int level = 0;
        for (; level < factors && combinations * updates(level) * count_ <= COMBINED; level++) {
            // The first goes last: it takes the place of what all are made from.
            for (int picked = updates(level); picked-- > 0;)
                extend(level, picked, shared_, combinations, shared_, picked * combinations);
            combinations *= updates(level);
        }
        if (level == factors) return hand_over(shared_, combinations, take);
        combine_others(factors, level, factors, combinations, take);
    }

    // Chooses an update for the factors from `first` to before `level`, that of the first changing fastest.
    template <class Take>
    void combine_others(int factors, int first, int level, Index combinations, Take& take) {
        if (level > first) {
            for (int update = 0; update < updates(level - 1); update++) {
                levels_[level - 1].picked = update;
                combine_others(factors, first, level - 1, combinations, take);
            }
            return;
        }
        for (int each = first; each < factors; each++)
            extend(each, levels_[each].picked, each == first ? shared_ : whole_, combinations, whole_, 0);
        hand_over(whole_, combinations, take);
    }

    // Adds an update of a factor to combinations of updates of those before, and writes these from `at` on.
    // PRISM multiplies weights in the order of factors.
    void extend(int level, int picked, const Combined& from, Index combinations, Combined& to, Index at) {
        int update = first_update(level) + picked;
        const Level& here = levels_[level];
        const double* weight = machine_.doubles(level, program_.weights[2 * update]);
        for (Index i = 0; i < combinations; i++)
            to.keys[at + i] = 31 * from.keys[i] + static_cast<std::uint32_t>(update);
        each_lane(combinations, [&](Index i, int lane) {
            to.weights[at * count_ + i] = weight[lane] * from.weights[i];
        });
        for (int word = 0; word < words_; word++) {
            const Word* set = here.set.data() + (Index{picked} * words_ + word) * BLOCK;
            Word kept = here.kept[picked * words_ + word];
            each_lane(combinations, [&](Index i, int lane) {
                to.targets[(at * count_ + i) * words_ + word] = (from.targets[i * words_ + word] & kept) | set[lane];
            });
        }
        if (!may_be_absent_) return;
        bool tested = program_.weights[2 * update + 1] != 0;
        each_lane(combinations, [&](Index i, int lane) {
            to.absent[at * count_ + i] = from.absent[i] | static_cast<std::uint8_t>(tested && weight[lane] == 0.0);
        });
    }

    // Calls a function for each state of each combination.
    template <class Do>
    void each_lane(Index combinations, Do act) const {
        if (count_ == 1) {
            for (Index i = 0; i < combinations; i++) act(i, 0);
            return;
        }
        for (Index i = 0; i < combinations; i++)
            for (int lane = 0; lane < count_; lane++) act(i * count_ + lane, lane);
    }

    template <class Take>
    void hand_over(const Combined& all, Index combinations, Take& take) {
        for (Index i = 0; i < combinations; i++) {
            const std::uint8_t* absent = may_be_absent_ ? all.absent.data() + i * count_ : nullptr;
            take(Transition{count_, places_, all.targets.data() + i * count_ * words_, all.weights.data() + i * count_,
                            absent, choice_, action_, all.keys[i]});
        }
    }

    int first_update(int level) const { return program_.update_starts[chosen_[level]]; }

    int updates(int level) const { return program_.update_starts[chosen_[level] + 1] - first_update(level); }

    static constexpr double SUM_TOLERANCE = 1e-12;  // PRISM's `epsilonDouble`
    static constexpr Index COMBINED = 32 * BLOCK;   // targets at once, which the cache of a core holds

    const PgProgram& program_;
    int words_;
    Machine machine_;
    std::vector<Level> levels_;
    std::vector<int> chosen_;
    Combined shared_, whole_;
    bool may_be_absent_ = false;
    std::vector<Word> states_;
    std::vector<double> sums_;
    std::vector<std::uint8_t> failed_;
    std::uint16_t places_[BLOCK];
    const Word* block_ = nullptr;
    std::int32_t choice_ = 0, action_ = -1;
    int count_ = 0, fault_ = -1;
};

}  // namespace prism_gpu
