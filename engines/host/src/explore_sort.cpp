// The states that were found, in order.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include "explore_space.hpp"
#include "team.hpp"

namespace prism_gpu {

namespace {

constexpr int BUCKETS = 256, SAMPLES = 32 * BUCKETS;

// A state of `Size` words.
template <int Size>
struct Record {
    Word words[Size];
    bool operator<(const Record& other) const { return before(words, other.words, Size); }
};

// Sorts by digits from the lowest on, and only by those that are not the same in all states.
template <int Size>
void sort_by_digits(Record<Size>* states, Index count) {
    constexpr int BITS = 8, DIGITS = 1 << BITS;
    Record<Size> differing{};
    for (Index i = 1; i < count; i++)
        for (int word = 0; word < Size; word++) differing.words[word] |= states[i].words[word] ^ states[0].words[word];
    std::vector<Record<Size>> copies(count);
    Record<Size>*from = states, *to = copies.data();
    for (int word = Size - 1; word >= 0; word--) {
        for (int shift = 0; shift < 64;) {
            Word left = differing.words[word] >> shift;
            if (left == 0) break;
            shift += __builtin_ctzll(left);
            Index starts[DIGITS] = {};
            for (Index i = 0; i < count; i++) starts[from[i].words[word] >> shift & (DIGITS - 1)]++;
            Index before_it = 0;
            for (Index& start : starts) before_it += std::exchange(start, before_it);
            for (Index i = 0; i < count; i++) to[starts[from[i].words[word] >> shift & (DIGITS - 1)]++] = from[i];
            std::swap(from, to);
            shift += BITS;
        }
    }
    if (from != states) std::copy_n(from, count, states);
}

template <int Size>
void sort_records(Word* words, Index count) {
    constexpr Index FEW = 128;
    auto* states = reinterpret_cast<Record<Size>*>(words);
    if (count < FEW) return std::sort(states, states + count);
    sort_by_digits(states, count);
}

void sort_states(Word* states, Index count, int words) {
    switch (words) {
        case 1: return sort_records<1>(states, count);
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
    if (words == 1) {
        // Without branches, which could not be predicted.
        int bucket = 0;
        for (int step = BUCKETS / 2; step > 0; step /= 2) bucket += step & -int{ends[bucket + step - 1] < state[0]};
        return bucket;
    }
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

}  // namespace

}  // namespace prism_gpu

// Writes down all states in order, and gives the memory of the tables back.
extern "C" std::int32_t pg_explore_states(void* handle, std::uint64_t* states) {
    using namespace prism_gpu;
    PgSpace& space = *static_cast<PgSpace*>(handle);
    try {
        gather(space, states);
        for (Table& table : space.tables) table = Table();
    } catch (const std::bad_alloc&) {
        return NO_MEMORY;
    }
    return DONE;
}
