// Breadth-first search: the choices of many states on all threads, then what they lead to, table by table.
//
// Which states there are, and in which order they are looked at, depends on sizes alone and not on
// threads: what a piece of the frontier leads to is inserted in the order of pieces. Where a state of
// the frontier has a fault, the others are looked at for faults alone.
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "explore_space.hpp"
#include "team.hpp"

namespace prism_gpu {

namespace {

constexpr Index BATCH_PIECES = 128, LARGEST_PIECE = 8 * BLOCK;
// What a batch leads to is kept until it is inserted: of states with many transitions it has fewer,
// and the first one shows how many they have.
constexpr Index BATCH_TRANSITIONS = Index{1} << 22;
// A batch of fewer pieces takes less time than waking threads for it.
constexpr Index PIECES_FOR_THREADS = 4;
constexpr int RECENT_BITS = 11;

// What one thread works with.
struct Worker {
    StateExpander expander;
    std::vector<Word> recent;  // states met lately, by hash: they need not be written down again

    explicit Worker(const PgSpace& space)
        : expander(space.program, space.compiled), recent((Index{1} << RECENT_BITS) * space.words, EMPTY) {}

    bool is_recent(const Word* state, Word hash, int words) {
        Word* slot = recent.data() + static_cast<Index>(hash & ((Word{1} << RECENT_BITS) - 1)) * words;
        if (same_state(slot, state, words)) return true;
        std::copy_n(state, words, slot);
        return false;
    }
};

class Search {
   public:
    explicit Search(PgSpace& space)
        : space_(space), words_(space.words), workers_(std::max(space.threads, 1)), found_(BATCH_PIECES * TABLES) {}

    // Goes on for some seconds, or until more than `most` states are found.
    Status run(double seconds, Index most) {
        double end = seconds_of(CLOCK_MONOTONIC) + seconds;
        bool in_time = true;
        most_ = most;
        pieces_ = next_batch();
        while (pieces_ > 0 && in_time && !no_memory_ && space_.count() <= most_) {
            if (pieces_ < PIECES_FOR_THREADS || space_.threads == 1)
                alone();
            else
                together(end);
            in_time = seconds_of(CLOCK_MONOTONIC) < end;
        }
        if (no_memory_) return NO_MEMORY;
        if (pieces_ > 0) return MORE;
        return at_fault() ? FAULT : DONE;
    }

   private:
    bool at_fault() const { return !space_.fault.empty(); }

    // Looks at one batch of states on this thread, and cuts the next.
    void alone() {
        for (Index piece = 0; piece < pieces_; piece++) expand(0, piece);
        for (int table = 0; table < TABLES && !at_fault(); table++) insert(table);
        finish_batch();
    }

    // Looks at batches on all threads, as long as there is time and they are large.
    void together(double end) {
        bool expanding = true;
        auto work = [&](int me, Index piece) {
            try {
                if (expanding)
                    expand(me, piece);
                else
                    insert(static_cast<int>(piece));
            } catch (const std::bad_alloc&) {
                no_memory_ = true;
            }
        };
        auto next = [&]() noexcept -> Index {
            if (no_memory_) return -1;
            expanding = !expanding || at_fault();
            if (!expanding) return TABLES;
            finish_batch();
            bool large = pieces_ >= PIECES_FOR_THREADS && space_.count() <= most_;
            return large && seconds_of(CLOCK_MONOTONIC) < end ? pieces_ : -1;
        };
        in_phases(space_.threads, pieces_, work, next);
    }

    void finish_batch() noexcept {
        Index at = std::min(space_.at + pieces_ * piece_ * words_, static_cast<Index>(space_.frontier.size()));
        space_.looked_at += (at - space_.at) / words_;
        space_.at = at;
        pieces_ = next_batch();
    }

    // Cuts the next states of the frontier into pieces; returns how many.
    Index next_batch() noexcept {
        bool level_ends = space_.at == static_cast<Index>(space_.frontier.size());
        if (level_ends && (at_fault() || !next_frontier())) return 0;
        Index states = (static_cast<Index>(space_.frontier.size()) - space_.at) / words_;
        Index of_each = 1 + space_.transitions / std::max<Index>(space_.looked_at, 1);
        Index most = space_.looked_at == 0 ? BLOCK : std::max<Index>(BATCH_TRANSITIONS / of_each, BLOCK);
        states = std::min(states, most);
        Index share = (states + BATCH_PIECES - 1) / BATCH_PIECES;
        piece_ = std::clamp((share + BLOCK - 1) / BLOCK * BLOCK, Index{BLOCK}, LARGEST_PIECE);
        return std::min((states + piece_ - 1) / piece_, BATCH_PIECES);
    }

    // Goes on with the states that were met for the first time; returns whether there are any.
    bool next_frontier() noexcept {
        space_.at = 0;
        space_.frontier.clear();
        try {
            for (std::vector<Word>& fresh : space_.fresh) {
                space_.frontier.insert(space_.frontier.end(), fresh.begin(), fresh.end());
                fresh.clear();
            }
        } catch (const std::bad_alloc&) {
            no_memory_ = true;
            return false;
        }
        return !space_.frontier.empty();
    }

    void expand(int me, Index piece) {
        if (!workers_[me]) workers_[me] = std::make_unique<Worker>(space_);
        Worker& worker = *workers_[me];
        const Word* first = space_.frontier.data() + space_.at + piece * piece_ * words_;
        const Word* all = space_.frontier.data() + space_.frontier.size();
        const Word* end = std::min(first + piece_ * words_, all);
        std::vector<Word>* found = found_.data() + piece * TABLES;
        // Not inserted where a state had a fault.
        for (int table = 0; table < TABLES; table++) found[table].clear();
        Index transitions = 0, choices = 0, crowding = 0;
        for (; first < end; first += BLOCK * words_) {
            int count = static_cast<int>(std::min<Index>(BLOCK, (end - first) / words_));
            std::int32_t choice = -1;
            Index before_block = transitions;
            auto take = [&](const Transition& of) {
                if (of.choice != choice) choices += of.count;
                choice = of.choice;
                transitions += of.count;
                for (int i = 0; i < of.count; i++) {
                    const Word* target = of.targets + i * words_;
                    if (of.absent != nullptr && of.absent[i]) continue;
                    if (same_state(target, first + of.places[i] * words_, words_)) continue;
                    Word hash = hash_of(target, words_);
                    if (worker.is_recent(target, hash, words_)) continue;
                    std::vector<Word>& of_table = found[table_of(hash)];
                    if (words_ == 1)
                        of_table.push_back(*target);
                    else
                        of_table.insert(of_table.end(), target, target + words_);
                }
            };
            int fault = worker.expander.expand(first, count, take);
            if (fault >= 0) blame(first + fault * words_);
            crowding += std::max<Index>(transitions - before_block - CROWD * count, 0);
        }
        space_.transitions += transitions;
        space_.choices += choices;
        space_.crowding += crowding;
    }

    // Keeps the first in order of the states with a fault.
    void blame(const Word* state) {
        std::lock_guard<std::mutex> lock(blaming_);
        if (space_.fault.empty() || before(state, space_.fault.data(), words_))
            space_.fault.assign(state, state + words_);
    }

    void insert(int number) {
        constexpr Index AHEAD = 16;
        Table& table = space_.tables[number];
        std::vector<Word>& fresh = space_.fresh[number];
        Word hashes[AHEAD];
        for (Index piece = 0; piece < pieces_; piece++) {
            std::vector<Word>& found = found_[piece * TABLES + number];
            Index count = static_cast<Index>(found.size()) / words_;
            for (Index first = 0; first < count; first += AHEAD) {
                Index here = std::min(AHEAD, count - first);
                const Word* state = found.data() + first * words_;
                for (Index i = 0; i < here; i++) {
                    hashes[i] = hash_of(state + i * words_, words_);
                    table.prefetch(hashes[i]);
                }
                for (Index i = 0; i < here; i++, state += words_) {
                    if (!table.reserve(space_.budget)) {
                        no_memory_ = true;
                        return;
                    }
                    if (table.insert(state, hashes[i])) fresh.insert(fresh.end(), state, state + words_);
                }
            }
            found.clear();
        }
    }

    PgSpace& space_;
    int words_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::vector<Word>> found_;  // by piece and table
    std::mutex blaming_;
    std::atomic<bool> no_memory_{false};
    Index piece_ = BLOCK, pieces_ = 0, most_ = 0;
};

}  // namespace

}  // namespace prism_gpu

// Begins a search from some states; tables may take `memory` bytes. The program's arrays must be kept.
extern "C" std::int32_t pg_explore_start(
    const PgProgram* program, const std::uint64_t* initial, std::int64_t count, std::int64_t memory,
    std::int32_t threads, void** space) {
    using namespace prism_gpu;
    try {
        auto made = std::make_unique<PgSpace>(*program, threads);
        made->budget.left = memory;
        for (Table& table : made->tables) table.start(made->words);
        for (Index i = 0; i < count; i++) {
            const Word* state = initial + i * made->words;
            Word hash = hash_of(state, made->words);
            int number = table_of(hash);
            Table& table = made->tables[number];
            if (!table.reserve(made->budget)) return NO_MEMORY;
            if (table.insert(state, hash)) made->fresh[number].insert(made->fresh[number].end(), state, state + made->words);
        }
        *space = made.release();
    } catch (const std::bad_alloc&) {
        return NO_MEMORY;
    }
    return DONE;
}

// From now on finds transitions by a compiled function, in the search and in rows.
//
// at_once: the most transitions that it finds at a time.
extern "C" void pg_explore_use(void* handle, PgExpand* expand, std::int32_t at_once) {
    static_cast<PgSpace*>(handle)->compiled = {expand, at_once};
}

// Goes on searching for some seconds, or until more than `most` states are found.
//
// numbers: states found, states still to be looked at, bytes that tables lack, at the most how many
// transitions and choices there are, and transitions beyond CROWD a state. fault: a state with a fault, where
// there is one.
extern "C" std::int32_t pg_explore_search(
    void* handle, double seconds, std::int64_t most, std::int64_t* numbers, std::uint64_t* fault) {
    using namespace prism_gpu;
    PgSpace& space = *static_cast<PgSpace*>(handle);
    Status status = NO_MEMORY;
    try {
        status = Search(space).run(seconds, most);
    } catch (const std::bad_alloc&) {
    }
    numbers[0] = space.count();
    numbers[1] = static_cast<Index>(space.frontier.size() - space.at) / space.words;
    numbers[2] = space.budget.lacking;
    numbers[3] = space.transitions;
    numbers[4] = space.choices;
    numbers[5] = space.crowding;
    std::copy(space.fault.begin(), space.fault.end(), fault);
    return status;
}

extern "C" void pg_explore_release(void* handle) { delete static_cast<PgSpace*>(handle); }
