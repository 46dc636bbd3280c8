// Slices of interleaved rows, and what prepares a matrix for any format.

#define LONG_ROW 255
#define BINS 256

// How many rows have each length, and how many slices each longest length, both capped at 255. A
// block of whole warps, of which each takes a slice.
extern "C" __global__ void measure_slices(
    const OFFSET* __restrict__ offsets, OFFSET rows, unsigned long long* row_bins,
    unsigned long long* slice_bins)
{
    __shared__ unsigned of_rows[BINS], of_slices[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) of_rows[bin] = of_slices[bin] = 0;
    __syncthreads();
    OFFSET row = thread_number();
    int length = 0;
    if (row < rows) {
        OFFSET whole = offsets[row + 1] - offsets[row];
        length = whole < BINS - 1 ? (int)whole : BINS - 1;
        atomicAdd(&of_rows[length], 1u);
    }
    for (int other = 16; other > 0; other /= 2)
        length = max(length, __shfl_down_sync(0xffffffff, length, other));
    if (threadIdx.x % 32 == 0 && row < rows) atomicAdd(&of_slices[length], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        if (of_rows[bin]) atomicAdd(&row_bins[bin], (unsigned long long)of_rows[bin]);
        if (of_slices[bin]) atomicAdd(&slice_bins[bin], (unsigned long long)of_slices[bin]);
    }
}

// The room that each slice takes, the length of each row in a byte, and the rows beyond the bound
// with their lengths, in any order.
extern "C" __global__ void size_slices(
    const OFFSET* __restrict__ offsets, OFFSET rows, int bound, OFFSET* sizes,
    unsigned char* lengths, int* num_long, long long* long_rows, long long* long_lengths)
{
    OFFSET row = thread_number();
    int length = 0;
    if (row < rows) {
        OFFSET whole = offsets[row + 1] - offsets[row];
        length = whole < bound ? (int)whole : bound;
        lengths[row] = whole > bound ? LONG_ROW : length;
        if (whole > bound) {
            int place = atomicAdd(num_long, 1);
            long_rows[place] = row;
            long_lengths[place] = whole;
        }
    }
    for (int other = 16; other > 0; other /= 2)
        length = max(length, __shfl_down_sync(0xffffffff, length, other));
    if (threadIdx.x % 32 == 0 && row < rows) sizes[row / 32] = (OFFSET)32 * length;
}

struct Place {
    OFFSET first;   // slot of the row's entry 0
    int bound;
    OFFSET tail;    // slot of its entry number `bound`, if there is one
};

__device__ Place place_of(OFFSET row, OFFSET length, const OFFSET* slices, int bound,
                          const OFFSET* long_rows, const OFFSET* tails, int num_long)
{
    Place place = {slices[row / 32] + row % 32, bound, 0};
    if (length > bound) {
        int low = 0, high = num_long - 1;
        while (low < high) {
            int middle = (low + high) / 2;
            if (long_rows[middle] < row) low = middle + 1;
            else high = middle;
        }
        place.tail = tails[low];
    }
    return place;
}

__device__ OFFSET slot_at(const Place& place, OFFSET k)
{
    return k < place.bound ? place.first + 32 * k : place.tail + (k - place.bound);
}

// Columns and values in their slots.
extern "C" __global__ void fill_interleaved(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ divisors, OFFSET rows,
    const OFFSET* __restrict__ slices, int bound, const OFFSET* __restrict__ long_rows,
    const OFFSET* __restrict__ tails, int num_long, int* slot_columns, double* slot_values)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    OFFSET begin = offsets[row], length = offsets[row + 1] - begin;
    Place place = place_of(row, length, slices, bound, long_rows, tails, num_long);
    for (OFFSET k = 0; k < length; k++) {
        OFFSET slot = slot_at(place, k);
        slot_columns[slot] = columns[begin + k];
        slot_values[slot] = value_at(values, divisors, row, begin + k);
    }
}

// The codes of pairs in their slots.
extern "C" __global__ void fill_entries(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ divisors,
    const int* __restrict__ row_states, OFFSET rows, const OFFSET* __restrict__ slices, int bound,
    const OFFSET* __restrict__ long_rows, const OFFSET* __restrict__ tails, int num_long,
    Key* value_keys, const int* __restrict__ value_codes, unsigned value_mask, Key* keys,
    const int* __restrict__ codes, unsigned mask, unsigned hash_mask, void* encoded, int width)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    Table values_there = {value_keys, value_mask, hash_mask}, table = {keys, mask, hash_mask};
    int state = state_of(row_states, row);
    OFFSET begin = offsets[row], length = offsets[row + 1] - begin;
    Place place = place_of(row, length, slices, bound, long_rows, tails, num_long);
    for (OFFSET k = 0; k < length; k++) {
        Key bits = bits_of(value_at(values, divisors, row, begin + k));
        Key key = pair_key(columns[begin + k] - state, value_codes[slot_of(values_there, bits)]);
        put_code(encoded, width, slot_at(place, k), codes[slot_of(table, key)]);
    }
}

// The state of each row of an MDP.
extern "C" __global__ void name_row_states(
    const OFFSET* __restrict__ group_offsets, const int* __restrict__ states, int groups,
    int* row_states)
{
    int group = blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= groups) return;
    int state = states ? states[group] : group;
    for (OFFSET row = group_offsets[group]; row < group_offsets[group + 1]; row++)
        row_states[row] = state;
}

// Jacobi for x = A x + b: takes the diagonal out and leaves the rows to be divided by 1 - a_ii.
extern "C" __global__ void split_diagonal(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, double* values,
    double* offset, const int* __restrict__ states, OFFSET rows, double* divisors)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    int state = state_of(states, row);
    double own = 0.0, others = 0.0;
    OFFSET end = offsets[row + 1];
    for (OFFSET entry = offsets[row]; entry < end; entry++)
        if (columns[entry] == state) {
            own += values[entry];
            values[entry] = 0.0;
        } else {
            others += values[entry];
        }
    double pivot = pivot_of(own, others);
    divisors[row] = pivot;
    if (offset) offset[row] /= pivot;
}

// Divides each row by its divisor, in place.
extern "C" __global__ void divide_rows(
    const OFFSET* __restrict__ offsets, double* values, OFFSET rows,
    const double* __restrict__ divisors)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    OFFSET end = offsets[row + 1];
    for (OFFSET entry = offsets[row]; entry < end; entry++) values[entry] /= divisors[row];
}

// How far before its row's number a column is at most, and how far behind it.
extern "C" __global__ void measure_reach(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, OFFSET rows, int* reach)
{
    OFFSET row = thread_number();
    // Of columns: of negated distances the maximum came out too small by NVRTC 13.2.
    int least = (int)row, greatest = (int)row;
    if (row < rows) {
        OFFSET end = offsets[row + 1];
        for (OFFSET entry = offsets[row]; entry < end; entry++) {
            int column = columns[entry];
            least = min(least, column);
            greatest = max(greatest, column);
        }
    }
    int below = (int)row - least, above = greatest - (int)row;
    for (int other = 16; other > 0; other /= 2) {
        below = max(below, __shfl_down_sync(0xffffffff, below, other));
        above = max(above, __shfl_down_sync(0xffffffff, above, other));
    }
    if (threadIdx.x % 32 != 0) return;
    if (below > *(volatile int*)reach) atomicMax(reach, below);
    if (above > *(volatile int*)(reach + 1)) atomicMax(reach + 1, above);
}
