// Products of a matrix with vectors, its transpose, and its entries put in order.
#include <algorithm>
#include <array>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "matrix.hpp"
#include "team.hpp"

using prism_gpu::Index;
using prism_gpu::Team;

namespace {

constexpr Index MOST_PIECES = 64;

// The sums begin with what `product` holds; entries are added in their order.
template <class Matrix>
void add_to(const Matrix& matrix, Index first, Index behind, const double* x, double* product) {
    for (Index row = first; row < behind; row++) {
        double total = product[row];
        for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++)
            total += matrix.value(entry) * x[matrix.columns[entry]];
        product[row] = total;
    }
}

// The same for `width` vectors, whose numbers of one state lie side by side.
template <class Matrix>
void add_to(const Matrix& matrix, Index first, Index behind, Index width, const double* x, double* product) {
    for (Index row = first; row < behind; row++) {
        double* totals = product + row * width;
        for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) {
            double value = matrix.value(entry);
            const double* read = x + static_cast<Index>(matrix.columns[entry]) * width;
            for (Index k = 0; k < width; k++) totals[k] += value * read[k];
        }
    }
}

template <class Matrix, class Target>
void transpose(const Matrix& matrix, Index columns, std::int64_t* starts, Target* rows, double* values) {
    std::fill(starts, starts + columns + 1, 0);
    Index entries = matrix.rows ? matrix.end(matrix.rows - 1) : 0;
    for (Index entry = 0; entry < entries; entry++) starts[matrix.columns[entry] + 1]++;
    std::partial_sum(starts, starts + columns + 1, starts);
    // Each start moves on with what is put behind it, up to where the next one was.
    for (Index row = 0; row < matrix.rows; row++)
        for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) {
            Index place = starts[matrix.columns[entry]]++;
            rows[place] = static_cast<Target>(row);
            values[place] = matrix.value(entry);
        }
    std::copy_backward(starts, starts + columns, starts + columns + 1);
    starts[0] = 0;
}

// A place among the items of all runs: of which run, and how far in.
struct Place {
    Index run, inside;
};

template <class Item>
void gather(Place from, Place to, const Index* firsts, const Index* lengths, const void* items, Item* write) {
    auto read = static_cast<const Item*>(items);
    for (; from.run < to.run; from = {from.run + 1, 0})
        write = std::copy(read + firsts[from.run] + from.inside, read + firsts[from.run] + lengths[from.run], write);
    if (from.inside < to.inside)
        std::copy(read + firsts[to.run] + from.inside, read + firsts[to.run] + to.inside, write);
}

// The items are cut into equal pieces, wherever a run begins.
template <class Item>
void gather(
    Index count, const Index* firsts, const Index* lengths, const void* items, void* to, Index total, int threads) {
    std::array<Place, MOST_PIECES + 1> cuts;
    Index pieces = std::clamp<Index>(threads, 1, MOST_PIECES), cut = 0, before = 0;
    for (Index run = 0; run < count; before += lengths[run++])
        for (; cut * total / pieces < before + lengths[run]; cut++) cuts[cut] = {run, cut * total / pieces - before};
    cuts[pieces] = {count, 0};
    if (cut < pieces) return;  // nothing to copy
    Team(threads).share(pieces, [&](Index piece) {
        Item* write = static_cast<Item*>(to) + piece * total / pieces;
        gather(cuts[piece], cuts[piece + 1], firsts, lengths, items, write);
    });
}

}  // namespace

// product += A x, for one vector or for `width` of them.
extern "C" void pg_add_product(
    const PgMatrix* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, std::int64_t width,
    const double* x, double* product) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        Team(threads).share(pieces, [&](Index piece) {
            if (width == 1) add_to(matrix, bounds[piece], bounds[piece + 1], x, product);
            else add_to(matrix, bounds[piece], bounds[piece + 1], width, x, product);
        });
    });
}

// sums: of each row's entries, one after the other. diagonal: of those in its own column.
extern "C" void pg_row_sums(const PgMatrix* given, double* sums) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        for (Index row = 0; row < matrix.rows; row++) {
            double total = 0.0;
            for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) total += matrix.value(entry);
            sums[row] = total;
        }
    });
}

// Adds the values of some entries, which ascend, to the sums of their rows, one after the other.
extern "C" void pg_add_in_rows(
    const PgMatrix* given, std::int64_t count, const std::int64_t* entries, const double* values, double* sums) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        Index at = 0;
        for (Index row = 0; row < matrix.rows && at < count; row++)
            for (; at < count && entries[at] < static_cast<Index>(matrix.end(row)); at++) sums[row] += values[at];
    });
}

// Sums of each row's entries but those in its own column; piece k is rows bounds[k] to bounds[k + 1] - 1.
extern "C" void pg_sums_beside_diagonal(
    const PgMatrix* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, double* sums) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        prism_gpu::Team(threads).share(pieces, [&](Index piece) {
            for (Index row = bounds[piece]; row < bounds[piece + 1]; row++) {
                double total = 0.0;
                for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++)
                    if (static_cast<Index>(matrix.columns[entry]) != row) total += matrix.value(entry);
                sums[row] = total;
            }
        });
    });
}

// The transpose, rows ascending in each column: starts of shape (columns + 1,), and rows of 32 or 64 bits.
extern "C" void pg_transpose(
    const PgMatrix* given, std::int64_t columns, std::int64_t* starts, void* rows, std::int32_t wide, double* values) {
    prism_gpu::with_types(*given, [&](const auto& matrix) {
        if (wide) transpose(matrix, columns, starts, static_cast<std::int64_t*>(rows), values);
        else transpose(matrix, columns, starts, static_cast<std::int32_t*>(rows), values);
    });
}

// Copies `lengths[k]` items of 1, 2, 4 or 8 bytes from place `firsts[k]` on, one run after the other.
extern "C" void pg_gather(
    std::int64_t count, const std::int64_t* firsts, const std::int64_t* lengths, const void* from,
    std::int32_t item_bytes, void* to, std::int64_t total, std::int32_t threads) {
    switch (item_bytes) {
        case 1: return gather<std::uint8_t>(count, firsts, lengths, from, to, total, threads);
        case 2: return gather<std::uint16_t>(count, firsts, lengths, from, to, total, threads);
        case 4: return gather<std::uint32_t>(count, firsts, lengths, from, to, total, threads);
        default: return gather<std::uint64_t>(count, firsts, lengths, from, to, total, threads);
    }
}

// Puts entries in order, by rows, then by columns, then as they came, and adds up those of one place.
// starts has the shape (rows + 1,). Returns how many are left, or -1 where there is no memory.
extern "C" std::int64_t pg_collect(
    std::int64_t rows, std::int64_t entries, const std::int64_t* row_of, const std::int64_t* column_of,
    const double* value_of, std::int64_t* starts, std::int64_t* columns, double* values) try {
    std::fill(starts, starts + rows + 1, 0);
    for (Index entry = 0; entry < entries; entry++) starts[row_of[entry] + 1]++;
    std::partial_sum(starts, starts + rows + 1, starts);
    std::vector<std::pair<std::int64_t, double>> placed(entries);
    std::vector<Index> next(starts, starts + rows);
    for (Index entry = 0; entry < entries; entry++)
        placed[next[row_of[entry]]++] = {column_of[entry], value_of[entry]};
    Index filled = 0, begin = 0;
    for (Index row = 0; row < rows; row++) {
        Index end = starts[row + 1], first = filled;
        std::stable_sort(
            placed.begin() + begin, placed.begin() + end, [](const auto& a, const auto& b) { return a.first < b.first; });
        for (Index k = begin; k < end; k++) {
            auto [column, value] = placed[k];
            if (filled > first && columns[filled - 1] == column) {
                values[filled - 1] += value;
            } else {
                columns[filled] = column;
                values[filled++] = value;
            }
        }
        begin = end;
        starts[row + 1] = filled;
    }
    return filled;
} catch (const std::bad_alloc&) {
    return -1;
}
