// The choices of states by a function that was compiled from the program.
//
// engines/program/blocks.py writes the function, and the structure here as C has it.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "explore_program.hpp"

// Where a compiled function writes transitions, and what it then calls, for each of them.
struct PgFound {
    // See `prism_gpu::Transition`.
    void (*take)(
        PgFound* found, std::int32_t count, const std::uint16_t* places, const std::uint64_t* targets,
        const double* weights, const std::uint8_t* absent, std::int32_t choice, std::int32_t action, std::uint32_t key);
    std::uint64_t* targets;
    double* weights;
    std::uint8_t* absent;
};

// Finds the transitions of a block of states; failed is set to whether a state has a fault.
using PgExpand = void(const std::uint64_t* states, std::int32_t count, PgFound* found, std::uint8_t* failed);

namespace prism_gpu {

struct Compiled {
    PgExpand* expand = nullptr;  // null for none
    int at_once = 0;             // transitions that are written before any is taken, at the most
};

// Does what an `Expander` does.
class CompiledExpander {
   public:
    CompiledExpander(int words, Compiled compiled)
        : words_(words),
          expand_(compiled.expand),
          targets_(Index{compiled.at_once} * BLOCK * words),
          weights_(Index{compiled.at_once} * BLOCK),
          absent_(Index{compiled.at_once} * BLOCK) {}

    // As `Expander::expand`.
    template <class Take>
    int expand(const Word* states, int count, Take& take) {
        struct Context : PgFound {
            Take* take_found;
            bool no_memory;
        };
        // No exception may pass through what a compiler of C has made.
        auto taken = [](PgFound* found, std::int32_t number, const std::uint16_t* places, const Word* targets,
                        const double* weights, const std::uint8_t* absent, std::int32_t choice, std::int32_t action,
                        std::uint32_t key) noexcept {
            auto& context = static_cast<Context&>(*found);
            try {
                (*context.take_found)(Transition{number, places, targets, weights, absent, choice, action, key});
            } catch (const std::bad_alloc&) {
                context.no_memory = true;
            }
        };
        Context context{{taken, targets_.data(), weights_.data(), absent_.data()}, &take, false};
        expand_(states, count, &context, failed_);
        if (context.no_memory) throw std::bad_alloc();
        int fault = -1;
        for (int i = 0; i < count; i++)
            if (failed_[i] && (fault < 0 || before(states + i * words_, states + fault * words_, words_))) fault = i;
        return fault;
    }

   private:
    int words_;
    PgExpand* expand_;
    std::vector<Word> targets_;
    std::vector<double> weights_;
    std::vector<std::uint8_t> absent_;
    std::uint8_t failed_[BLOCK];
};

// Finds transitions by a compiled function where there is one, else by byte code.
class StateExpander {
   public:
    StateExpander(const PgProgram& program, Compiled compiled) {
        if (compiled.expand != nullptr)
            compiled_.emplace(program.code.words, compiled);
        else
            interpreted_.emplace(program);
    }

    // As `Expander::expand`.
    template <class Take>
    int expand(const Word* states, int count, Take take) {
        return compiled_ ? compiled_->expand(states, count, take) : interpreted_->expand(states, count, take);
    }

   private:
    std::optional<CompiledExpander> compiled_;
    std::optional<Expander> interpreted_;
};

}  // namespace prism_gpu
