// The states that were found, in order, and their numbers.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "explore_space.hpp"
#include "team.hpp"

namespace prism_gpu {

namespace {

constexpr int BUCKETS = 256, SAMPLES = 32 * BUCKETS;

// A state of `Size` words; 0 stands for any number, and such are sorted by way of pointers.
template <int Size>
struct Record {
    Word words[Size];
    bool operator<(const Record& other) const { return before(words, other.words, Size); }
};

template <int Size>
void sort_records(Word* states, Index count) {
    auto* first = reinterpret_cast<Record<Size>*>(states);
    std::sort(first, first + count);
}

void sort_states(Word* states, Index count, int words) {
    switch (words) {
        case 1: return std::sort(states, states + count);
        case 2: return sort_records<2>(states, count);
        case 3: return sort_records<3>(states, count);
        case 4: return sort_records<4>(states, count);
        default: break;
    }
    std::vector<Word> copied(states, states + count * words);
    std::vector<const Word*> order(count);
    for (Index i = 0; i < count; i++) order[i] = copied.data() + i * words;
    std::sort(order.begin(), order.end(), [words](const Word* a, const Word* b) { return before(a, b, words); });
    for (Index i = 0; i < count; i++) std::copy_n(order[i], words, states + i * words);
}

// Calls `visit(state)` for each state of a table.
template <class Visit>
void each_state(const Table& table, int words, Visit visit) {
    const Word* end = table.begin() + table.capacity() * words;
    for (const Word* state = table.begin(); state != end; state += words)
        if (state[0] != EMPTY) visit(state);
}

// States, each of which ends a bucket of about as many states as the others.
std::vector<Word> bucket_ends(const PgSpace& space, Index count) {
    int words = space.words;
    Index stride = std::max<Index>(1, count / SAMPLES), seen = 0;
    std::vector<Word> samples;
    for (const Table& table : space.tables)
        each_state(table, words, [&](const Word* state) {
            if (seen++ % stride == 0) samples.insert(samples.end(), state, state + words);
        });
    Index taken = static_cast<Index>(samples.size()) / words;
    sort_states(samples.data(), taken, words);
    std::vector<Word> ends;
    for (Index i = 1; i < BUCKETS; i++) {
        const Word* end = samples.data() + i * taken / BUCKETS * words;
        ends.insert(ends.end(), end, end + words);
    }
    return ends;
}

int bucket_of(const std::vector<Word>& ends, const Word* state, int words) {
    int first = 0, last = BUCKETS - 1;
    while (first < last) {
        int middle = (first + last) / 2;
        if (before(state, ends.data() + middle * words, words))
            last = middle;
        else
            first = middle + 1;
    }
    return first;
}

void gather(const PgSpace& space, Word* states) {
    int words = space.words;
    Team team(space.threads);
    std::vector<Word> ends = bucket_ends(space, space.count());
    std::vector<Index> starts(BUCKETS * TABLES + 1, 0);  // of each bucket, and within it each table
    team.share(TABLES, [&](Index table) {
        each_state(space.tables[table], words,
                   [&](const Word* state) { starts[bucket_of(ends, state, words) * TABLES + table + 1]++; });
    });
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<Index> next(starts.begin(), starts.end() - 1);
    team.share(TABLES, [&](Index table) {
        each_state(space.tables[table], words, [&](const Word* state) {
            Index place = next[bucket_of(ends, state, words) * TABLES + table]++;
            std::copy_n(state, words, states + place * words);
        });
    });
    team.share(BUCKETS, [&](Index bucket) {
        Index first = starts[bucket * TABLES], last = starts[(bucket + 1) * TABLES];
        sort_states(states + first * words, last - first, words);
    });
}

void rank(PgSpace& space, const Word* states, Index count) {
    constexpr Index PIECE = 1 << 14, AHEAD = 16;
    int words = space.words;
    for (Table& table : space.tables) table.ranks.reset(new std::uint32_t[table.capacity()]);
    Team(space.threads).share((count + PIECE - 1) / PIECE, [&](Index piece) {
        Word hashes[AHEAD];
        Index last = std::min(count, (piece + 1) * PIECE);
        for (Index first = piece * PIECE; first < last; first += AHEAD) {
            Index here = std::min(AHEAD, last - first);
            for (Index i = 0; i < here; i++) {
                hashes[i] = hash_of(states + (first + i) * words, words);
                space.tables[table_of(hashes[i])].prefetch(hashes[i]);
            }
            for (Index i = 0; i < here; i++) {
                Table& table = space.tables[table_of(hashes[i])];
                Index slot = table.find(states + (first + i) * words, hashes[i]);
                table.ranks[slot] = static_cast<std::uint32_t>(first + i);
            }
        }
    });
}

}  // namespace

}  // namespace prism_gpu

// Writes down all states in order, and notes their numbers.
extern "C" std::int32_t pg_explore_states(void* handle, std::uint64_t* states) {
    using namespace prism_gpu;
    PgSpace& space = *static_cast<PgSpace*>(handle);
    try {
        gather(space, states);
        rank(space, states, space.count());
    } catch (const std::bad_alloc&) {
        return NO_MEMORY;
    }
    return DONE;
}
