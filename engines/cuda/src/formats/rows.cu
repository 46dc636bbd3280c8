// Distinct rows: lists of pairs of a distance and a value, with a right-hand side if one is given.
//
// A slot of the hash table holds the first row that came there; another row is the same if all of
// its entries are. The codes go by the smallest row of each kind, so that they do not depend on
// races.

struct Rows {
    const OFFSET* offsets;
    const int* columns;
    const double* values;
    const double* divisors;
    const double* offset;
    const int* row_states;
};

__device__ Key hash_of_row(const Rows& rows, OFFSET row)
{
    int state = state_of(rows.row_states, row);
    Key hash = rows.offset ? bits_of(rows.offset[row]) : 0;
    OFFSET end = rows.offsets[row + 1];
    for (OFFSET entry = rows.offsets[row]; entry < end; entry++) {
        hash = (hash ^ (unsigned)(rows.columns[entry] - state)) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 29;
        hash = (hash ^ bits_of(value_at(rows.values, rows.divisors, row, entry)))
            * 0xbf58476d1ce4e5b9ULL;
        hash ^= hash >> 32;
    }
    return hash;
}

__device__ bool same_row(const Rows& rows, OFFSET a, OFFSET b)
{
    if (a == b) return true;
    OFFSET at = rows.offsets[a], end = rows.offsets[a + 1], other = rows.offsets[b];
    if (end - at != rows.offsets[b + 1] - other) return false;
    if (rows.offset && bits_of(rows.offset[a]) != bits_of(rows.offset[b])) return false;
    int apart = state_of(rows.row_states, a) - state_of(rows.row_states, b);
    for (; at < end; at++, other++) {
        if (rows.columns[at] - rows.columns[other] != apart) return false;
        if (bits_of(value_at(rows.values, rows.divisors, a, at))
            != bits_of(value_at(rows.values, rows.divisors, b, other)))
            return false;
    }
    return true;
}

// The kinds of rows in a sample; `slots` takes the slot of each, unless it is null.
extern "C" __global__ void gather_rows(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ divisors,
    const double* __restrict__ offset, const int* __restrict__ row_states, OFFSET count_of_rows,
    OFFSET sampled, OFFSET stride, Key* firsts, unsigned mask, unsigned hash_mask, int* count,
    int limit, int* slots)
{
    OFFSET i = thread_number(), row = sampled_row(i, stride);
    if (i >= sampled || row >= count_of_rows) return;
    Rows rows = {offsets, columns, values, divisors, offset, row_states};
    unsigned slot = hashed(hash_of_row(rows, row), hash_mask) & mask;
    for (;; slot = (slot + 1) & mask) {
        Key first = firsts[slot];
        if (first == EMPTY) {
            if (*(volatile int*)count > limit) return;
            first = atomicCAS(&firsts[slot], EMPTY, (Key)row);
            if (first == EMPTY) {
                atomicAdd(count, 1);
                break;
            }
        }
        if (same_row(rows, (OFFSET)first, row)) break;
        if (*(volatile int*)count > limit) return;
    }
    if (slots) slots[row] = slot;
}

// The smallest row of each slot; `firsts` is overwritten.
extern "C" __global__ void find_smallest_rows(
    const int* __restrict__ slots, OFFSET rows, Key* firsts)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    Key* first = &firsts[slots[row]];
    if ((Key)row < *(volatile Key*)first) atomicMin(first, (Key)row);
}

// How long each kind of row is.
extern "C" __global__ void measure_patterns(
    const OFFSET* __restrict__ offsets, const Key* __restrict__ chosen, int patterns,
    OFFSET* lengths)
{
    int pattern = blockIdx.x * blockDim.x + threadIdx.x;
    if (pattern >= patterns) return;
    OFFSET row = (OFFSET)chosen[pattern];
    lengths[pattern] = offsets[row + 1] - offsets[row];
}

// The pairs of each kind of row, and its right-hand side.
extern "C" __global__ void copy_patterns(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ divisors,
    const double* __restrict__ offset, const int* __restrict__ row_states,
    const Key* __restrict__ chosen, int patterns, const OFFSET* __restrict__ starts,
    double2* pairs, double* givens)
{
    int pattern = blockIdx.x * blockDim.x + threadIdx.x;
    if (pattern >= patterns) return;
    OFFSET row = (OFFSET)chosen[pattern], to = starts[pattern];
    int state = state_of(row_states, row);
    for (OFFSET entry = offsets[row]; entry < offsets[row + 1]; entry++, to++)
        pairs[to] = double2{value_at(values, divisors, row, entry),
                            __longlong_as_double(columns[entry] - state)};
    if (givens) givens[pattern] = offset[row];
}

// The code of each row.
extern "C" __global__ void encode_rows(
    const int* __restrict__ slots, OFFSET rows, const int* __restrict__ codes, void* encoded,
    int width)
{
    OFFSET row = thread_number();
    if (row < rows) put_code(encoded, width, row, codes[slots[row]]);
}
