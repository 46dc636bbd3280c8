// Finding rows of the same shape and laying them out as runs; engines/host/run_encoding.py says what these are.
#include <bit>

#include "run_length.hpp"
#include "system.hpp"

using prism_gpu::Index;
using prism_gpu::LONGEST_RUN;

namespace {

using Key = std::uint64_t;

Key mixed(Key key, Key word) {
    // Multiplication by 2^64 over the golden ratio (Knuth, vol. 3, 6.4) spreads what differs.
    Key spread = (key ^ word) * 0x9E3779B97F4A7C15u;
    return spread ^ (spread >> 29);
}

bool same_bits(double one, double other) { return std::bit_cast<Key>(one) == std::bit_cast<Key>(other); }

// The rows of a system by the positions that its states are moved to.
template <class System>
struct Ordered {
    using Number = typename System::MatrixType::ColumnType;
    const System& system;
    const Number* places;   // the position of each state; null for its number
    const Number* updates;  // which row or group computes a position, -1 for none; null for its number

    Index place(Index state) const { return places ? static_cast<Index>(places[state]) : state; }
    Index update(Index position) const { return updates ? static_cast<Index>(updates[position]) : position; }
};

// Whether each column of a row or group is one further than that of the one before.
template <class System>
bool continues(const Ordered<System>& ordered, Index unit, Index before, bool share_values, bool share_given) {
    const auto& system = ordered.system;
    const auto& matrix = system.matrix;
    Index begin = system.first_row(unit), earlier = system.first_row(before);
    Index choices = system.first_row(unit + 1) - begin;
    if (choices != system.first_row(before + 1) - earlier) return false;
    for (Index row = begin, other = earlier; row < begin + choices; row++, other++) {
        Index first = matrix.begin(row), back = first - matrix.begin(other);
        if (matrix.end(row) - first != matrix.end(other) - matrix.begin(other)) return false;
        if (share_given && !same_bits(system.offset[row], system.offset[other])) return false;
        for (Index entry = first; entry < matrix.end(row); entry++) {
            Index here = ordered.place(matrix.columns[entry]), there = ordered.place(matrix.columns[entry - back]);
            if (here - there != 1) return false;
            if (share_values && !same_bits(matrix.values[entry], matrix.values[entry - back])) return false;
        }
    }
    return true;
}

template <class System>
Index find_starts(
    const Ordered<System>& ordered, Index positions, Index units, bool share_values, bool share_given, Index most,
    bool* goes_on, std::int64_t* starts) {
    Index count = 0;
    // By the old numbers, so that the matrix is read from its start to its end.
    for (Index unit = 0; unit < units; unit++) {
        Index position = ordered.place(ordered.system.state_of(unit));
        Index before = position ? ordered.update(position - 1) : -1;
        goes_on[position] = before >= 0 && continues(ordered, unit, before, share_values, share_given);
        count += !goes_on[position];
        if (count > most) return -1;
    }
    Index found = 0;
    for (Index position = 0; position < positions; position++) {
        if (ordered.update(position) < 0) continue;
        if (!goes_on[position] || position - starts[found - 1] == LONGEST_RUN) starts[found++] = position;
    }
    return found;
}

}  // namespace

// Arrays of `Runs` of engines/host/run_encoding.py; the starts have an end each.
struct PgRunArrays {
    const std::int64_t *firsts, *lengths, *run_choices, *number_starts, *given_starts;
    std::int64_t runs;
    std::int32_t share_numbers, share_givens;
    std::int64_t *choice_pairs, *distances;  // written, like those behind
    double *numbers, *givens;
};

namespace {

template <class System>
void fill(const Ordered<System>& ordered, const PgRunArrays& arrays) {
    const auto& system = ordered.system;
    const auto& matrix = system.matrix;
    Index pair = 0;
    arrays.choice_pairs[0] = 0;
    for (Index run = 0; run < arrays.runs; run++) {
        Index first = arrays.firsts[run], size = arrays.lengths[run];
        Index rows = arrays.share_numbers ? 1 : size, given_rows = arrays.share_givens ? 1 : size;
        double* numbers = arrays.numbers + arrays.number_starts[run];
        double* givens = arrays.givens + arrays.given_starts[run];
        Index begin = system.first_row(ordered.update(first));
        for (Index choice = 0; choice < arrays.run_choices[run + 1] - arrays.run_choices[run]; choice++) {
            Index length = matrix.end(begin + choice) - matrix.begin(begin + choice);
            for (Index entry = matrix.begin(begin + choice); entry < matrix.end(begin + choice); entry++)
                arrays.distances[pair++] = ordered.place(matrix.columns[entry]) - first;
            arrays.choice_pairs[arrays.run_choices[run] + choice + 1] = pair;
            auto row_of = [&](Index row) { return system.first_row(ordered.update(first + row)) + choice; };
            for (Index row = 0; row < rows; row++)
                for (Index entry = 0; entry < length; entry++)
                    numbers[entry * rows + row] = matrix.values[matrix.begin(row_of(row)) + entry];
            if (system.offset)
                for (Index row = 0; row < given_rows; row++) givens[row] = system.offset[row_of(row)];
            numbers += length * rows;
            givens += given_rows;
        }
    }
}

template <class Function>
auto with_order(const PgSystem& given, const void* places, const void* updates, Function function) {
    return prism_gpu::with_types(given, [&]<class System>(const System& system) {
        using Number = typename System::MatrixType::ColumnType;
        return function(
            Ordered<System>{system, static_cast<const Number*>(places), static_cast<const Number*>(updates)});
    });
}

}  // namespace

// Writes a hash of the distances of each row or group: different ones may have the same.
extern "C" void pg_shapes(const PgSystem* given, std::int64_t units, Key* hashes) {
    prism_gpu::with_types(*given, [&](const auto& system) {
        const auto& matrix = system.matrix;
        for (Index unit = 0; unit < units; unit++) {
            Index begin = system.first_row(unit), end = system.first_row(unit + 1), state = system.state_of(unit);
            Key key = static_cast<Key>(end - begin);
            for (Index row = begin; row < end; row++) {
                key = mixed(key, static_cast<Key>(matrix.end(row) - matrix.begin(row)));
                for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++)
                    key = mixed(key, static_cast<Key>(static_cast<Index>(matrix.columns[entry]) - state));
            }
            hashes[unit] = key;
        }
    });
}

// Numbers distinct keys in the order of their first appearance; returns how many there are, or -1 for more
// than `most`. The table has `size` places, a power of two above `most`, with -1 for numbers at first.
extern "C" std::int64_t pg_classify(
    const Key* keys, std::int64_t count, std::int64_t most, std::int64_t size, Key* known, std::int32_t* numbers,
    std::int32_t* classes, Key* distinct) {
    Index found = 0;
    Key mask = static_cast<Key>(size - 1);
    for (Index index = 0; index < count; index++) {
        Key key = keys[index], slot = (mixed(key, 1) >> 16) & mask;
        while (numbers[slot] >= 0 && known[slot] != key) slot = (slot + 1) & mask;
        if (numbers[slot] < 0) {
            if (found == most) return -1;
            known[slot] = distinct[found] = key;
            numbers[slot] = static_cast<std::int32_t>(found++);
        }
        classes[index] = numbers[slot];
    }
    return found;
}

// Writes the indices by class within each tile, stably, classes by first appearance; `places` holds a 0 for
// each class, `seen` has room for as many.
extern "C" void pg_sort_in_tiles(
    const std::int32_t* classes, std::int64_t count, std::int64_t tile, std::int64_t* places, std::int64_t* seen,
    std::int64_t* order) {
    for (Index begin = 0; begin < count; begin += tile) {
        Index end = begin + tile < count ? begin + tile : count, different = 0, place = begin;
        for (Index index = begin; index < end; index++)
            if (places[classes[index]]++ == 0) seen[different++] = classes[index];
        for (Index k = 0; k < different; k++) {
            Index members = places[seen[k]];
            places[seen[k]] = place;
            place += members;
        }
        for (Index index = begin; index < end; index++) order[places[classes[index]]++] = index;
        for (Index k = 0; k < different; k++) places[seen[k]] = 0;
    }
}

// Writes the positions that runs start at; returns how many there are, or -1 where more than `most` would
// start before the longest are cut. places, updates: as in `Ordered`, of the type of columns. goes_on: zeros.
extern "C" std::int64_t pg_run_starts(
    const PgSystem* system, const void* places, const void* updates, std::int64_t positions, std::int64_t units,
    std::int32_t share_values, std::int32_t share_given, std::int64_t most, bool* goes_on, std::int64_t* starts) {
    return with_order(*system, places, updates, [&](const auto& ordered) {
        bool given = share_given != 0 && ordered.system.offset;
        return find_starts(ordered, positions, units, share_values != 0, given, most, goes_on, starts);
    });
}

// Writes the arrays of runs that were found.
extern "C" void pg_fill_runs(
    const PgSystem* system, const void* places, const void* updates, const PgRunArrays* arrays) {
    with_order(*system, places, updates, [&](const auto& ordered) { fill(ordered, *arrays); });
}
