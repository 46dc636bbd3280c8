// The states met so far, in hash tables that are shared out by the states' hashes.
//
// A table is changed by one thread at a time: who finds states writes down those of each table, and
// they are inserted afterwards, table by table.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "explore_code.hpp"

namespace prism_gpu {

constexpr Word EMPTY = ~Word{0};  // No word of a state is all ones.
constexpr int TABLE_BITS = 6, TABLES = 1 << TABLE_BITS;

inline Word mixed(Word x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

inline Word hash_of(const Word* state, int words) {
    Word hash = mixed(state[0]);
    for (int i = 1; i < words; i++) hash = mixed(hash ^ (state[i] + 0x9e3779b97f4a7c15u));
    return hash;
}

inline int table_of(Word hash) { return static_cast<int>(hash >> (64 - TABLE_BITS)); }

inline bool same_state(const Word* a, const Word* b, int words) {
    for (int i = 0; i < words; i++)
        if (a[i] != b[i]) return false;
    return true;
}

// The bytes that tables may take, and what they would need beyond that.
struct Budget {
    std::atomic<Index> left;
    std::atomic<Index> lacking{0};

    bool take(Index bytes) {
        if (left.fetch_sub(bytes) >= bytes) return true;
        left += bytes;
        lacking = bytes;
        return false;
    }
};

class Table {
   public:
    // Makes room for the first states; throws std::bad_alloc.
    void start(int words) {
        words_ = words;
        resize(START);
    }

    Index count() const { return count_; }
    const Word* begin() const { return slots_.get(); }
    Index capacity() const { return mask_ + 1; }

    // Whether one more state fits, growing where it does not.
    bool reserve(Budget& budget) {
        if (4 * count_ < 3 * capacity()) return true;
        Index larger = 2 * capacity();
        if (!budget.take(larger * words_ * Index{sizeof(Word)})) return false;
        std::unique_ptr<Word[]> old = std::move(slots_);
        Index before = capacity();
        try {
            resize(larger);
        } catch (const std::bad_alloc&) {
            slots_ = std::move(old);
            budget.lacking = larger * words_ * Index{sizeof(Word)};
            return false;
        }
        for (Index i = 0; i < before; i++) {
            const Word* state = old.get() + i * words_;
            if (state[0] != EMPTY) std::copy_n(state, words_, slots_.get() + find(state, hash_of(state, words_)) * words_);
        }
        budget.left += before * words_ * Index{sizeof(Word)};
        return true;
    }

    void prefetch(Word hash) const { __builtin_prefetch(slots_.get() + (static_cast<Index>(hash) & mask_) * words_); }

    // Adds a state unless it is there; returns whether it was not.
    bool insert(const Word* state, Word hash) {
        Word* slot = slots_.get() + find(state, hash) * words_;
        if (slot[0] != EMPTY) return false;
        std::copy_n(state, words_, slot);
        count_++;
        return true;
    }

    // Returns the slot that a state is in, or else would be.
    Index find(const Word* state, Word hash) const {
        Index slot = static_cast<Index>(hash) & mask_;
        for (;; slot = (slot + 1) & mask_) {
            const Word* there = slots_.get() + slot * words_;
            if (there[0] == EMPTY || same_state(there, state, words_)) return slot;
        }
    }

    // Numbers of states, one a slot; throws std::bad_alloc.
    std::unique_ptr<std::uint32_t[]> ranks;

   private:
    static constexpr Index START = 64;

    void resize(Index slots) {
        slots_.reset(new Word[slots * words_]);
        std::fill_n(slots_.get(), slots * words_, EMPTY);
        mask_ = slots - 1;
    }

    int words_ = 1;
    Index mask_ = 0, count_ = 0;
    std::unique_ptr<Word[]> slots_;
};

}  // namespace prism_gpu
