// Byte code of expressions, evaluated over blocks of packed states.
//
// engines/host/exploring/bytecode.py writes it and says what it means.
#pragma once

#include <cstdint>
#include <vector>

#include "matrix.hpp"

// `HostCode` of engines/host/exploring/tables.py.
struct PgCode {
    std::int32_t words;       // of a state
    std::int32_t registers;   // that the largest section has
    std::int32_t constants;
    const std::int32_t* fields;          // a row a variable: word, shift, bits, least value
    const std::int32_t* instructions;    // a row each: operation, result, three operands
    const std::int32_t* constant_kinds;  // 0 Boolean, 1 integer, 2 double
    const double* constant_values;
};

namespace prism_gpu {

using Word = std::uint64_t;

// States that are evaluated together.
constexpr int BLOCK = 256;
constexpr std::int32_t NO_REGISTER = INT32_MIN;

// Whether a state comes before another.
inline bool before(const Word* a, const Word* b, int words) {
    for (int i = 0; i < words; i++)
        if (a[i] != b[i]) return a[i] < b[i];
    return false;
}

// Which states of a block.
struct Mask {
    static constexpr int PARTS = BLOCK / 64;
    Word bits[PARTS];

    static Mask first(int count) {
        Mask mask;
        for (int i = 0; i < PARTS; i++) {
            int here = count - 64 * i;
            mask.bits[i] = here >= 64 ? ~Word{0} : here > 0 ? (Word{1} << here) - 1 : 0;
        }
        return mask;
    }
    bool any() const {
        Word all = 0;
        for (Word part : bits) all |= part;
        return all != 0;
    }
    Mask both(const Mask& other) const {
        Mask result;
        for (int i = 0; i < PARTS; i++) result.bits[i] = bits[i] & other.bits[i];
        return result;
    }
    // Writes the places of the states in order; returns how many there are.
    int places(std::uint16_t* found) const {
        int count = 0;
        for (int i = 0; i < PARTS; i++)
            for (Word part = bits[i]; part != 0; part &= part - 1)
                found[count++] = static_cast<std::uint16_t>(64 * i + __builtin_ctzll(part));
        return count;
    }
};

// Evaluates sections of a code; each thread has one of its own.
class Machine {
   public:
    // banks: how many sections keep their registers at the same time. masks: how many there are.
    Machine(const PgCode& code, int banks, int masks);

    // Evaluates instructions for `count` states.
    //
    // states: packed, one state after the other. bank: where results are kept. failed: set to 1 where an
    // expression has no value.
    void run(int begin, int end, const Word* states, int count, int bank, std::uint8_t* failed);

    const std::uint8_t* bools(int bank, std::int32_t index) const {
        return reinterpret_cast<const std::uint8_t*>(at(bank, index));
    }
    const std::int32_t* ints(int bank, std::int32_t index) const {
        return reinterpret_cast<const std::int32_t*>(at(bank, index));
    }
    const double* doubles(int bank, std::int32_t index) const { return at(bank, index); }
    const Mask& mask(int number) const { return masks_[number]; }

   private:
    const double* at(int bank, std::int32_t index) const {
        Index place = index < 0 ? -1 - Index{index} : constants_ + Index{bank} * registers_ + index;
        return values_.data() + place * BLOCK;
    }
    double* to(int bank, std::int32_t index) { return const_cast<double*>(at(bank, index)); }

    const PgCode& code_;
    Index registers_, constants_;
    std::vector<double> values_;
    std::vector<Mask> masks_;
};

}  // namespace prism_gpu
