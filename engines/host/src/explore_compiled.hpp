// The choices of states by a function that was compiled from the program.
//
// engines/host/exploring/compiled.py writes the function, and the structures here as C has them.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "explore_program.hpp"

// A transition, but for its target.
struct PgTaken {
    double weight;
    std::int32_t place;   // of the state within its block
    std::int32_t choice;  // of the state, counted from 0
    std::int32_t action;
    std::uint32_t site;   // mostly the same for the same commands and updates
};

// Transitions that were found: those of a state one after the other, in PRISM's order.
struct PgBuffer {
    std::int32_t count, capacity, place;
    std::uint64_t* targets;
    PgTaken* taken;
    void (*full)(PgBuffer*);  // empties it
};

// Finds the transitions of some states; failed is set to whether a state has a fault.
using PgExpand = void(const std::uint64_t* states, std::int32_t count, PgBuffer* found, std::uint8_t* failed);

namespace prism_gpu {

// Transitions as a compiled function finds them; see `Transition`.
struct Listed {
    int count;
    const Word* targets;
    const PgTaken* taken;

    int place(int i) const { return taken[i].place; }
    double weight(int i) const { return taken[i].weight; }
    bool is_absent(int) const { return false; }
    std::int32_t choice(int i) const { return taken[i].choice; }
    std::int32_t action(int i) const { return taken[i].action; }
    std::uint32_t key(int i) const { return taken[i].site; }
    Index choices_after(ChoiceMet& last) const {
        Index begun = 0;
        for (int i = 0; i < count; i++) {
            begun += taken[i].choice != last.choice || taken[i].place != last.place;
            last = {taken[i].choice, taken[i].place};
        }
        return begun;
    }
};

class CompiledExpander {
   public:
    CompiledExpander(int words, PgExpand* expand) : words_(words), expand_(expand), targets_(CAPACITY * words), taken_(CAPACITY) {}

    // As `Expander::expand`.
    template <class Take>
    int expand(const Word* states, int count, Take take) {
        struct Context : PgBuffer {
            Take* take;
            bool no_memory;
        };
        // No exception may pass through what a compiler of C has made.
        auto empty = [](PgBuffer* buffer) noexcept {
            auto& context = static_cast<Context&>(*buffer);
            try {
                (*context.take)(Listed{buffer->count, buffer->targets, buffer->taken});
            } catch (const std::bad_alloc&) {
                context.no_memory = true;
            }
            buffer->count = 0;
        };
        Context context{{0, CAPACITY, 0, targets_.data(), taken_.data(), empty}, &take, false};
        expand_(states, count, &context, failed_);
        empty(&context);
        if (context.no_memory) throw std::bad_alloc();
        int fault = -1;
        for (int i = 0; i < count; i++)
            if (failed_[i] && (fault < 0 || before(states + i * words_, states + fault * words_, words_))) fault = i;
        return fault;
    }

   private:
    static constexpr int CAPACITY = 2048;

    int words_;
    PgExpand* expand_;
    std::vector<Word> targets_;
    std::vector<PgTaken> taken_;
    std::uint8_t failed_[BLOCK];
};

// Finds transitions by a compiled function where there is one, else by byte code.
class StateExpander {
   public:
    StateExpander(const PgProgram& program, PgExpand* compiled) {
        if (compiled != nullptr)
            compiled_.emplace(program.code.words, compiled);
        else
            interpreted_.emplace(program);
    }

    // Whether the transitions of a state come one after the other.
    bool by_state() const { return compiled_.has_value(); }

    // As `Expander::expand`; `take` is called with a `Transition` or a `Listed`.
    template <class Take>
    int expand(const Word* states, int count, Take take) {
        return compiled_ ? compiled_->expand(states, count, take) : interpreted_->expand(states, count, take);
    }

   private:
    std::optional<CompiledExpander> compiled_;
    std::optional<Expander> interpreted_;
};

}  // namespace prism_gpu
