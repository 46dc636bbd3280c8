// Distinct values and numbers, by hash tables.
//
// The host sorts the keys that are found and numbers them, so that codes do not depend on races.

// What a thread looks at where `share` of them take a row of a sample.
struct RowShare {
    OFFSET row, first;  // the row, and the first of its entries that is this thread's
    bool there;
};

__device__ RowShare share_of_row(OFFSET rows, OFFSET sampled, OFFSET stride, int share)
{
    long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    OFFSET i = (OFFSET)(thread / share), row = sampled_row(i, stride);
    return {row, (OFFSET)(thread % share), i < sampled && row < rows};
}

// The values of a sample of rows.
extern "C" __global__ void gather_values(
    const OFFSET* __restrict__ offsets, const double* __restrict__ values,
    const double* __restrict__ divisors, OFFSET rows, OFFSET sampled, OFFSET stride, int share,
    Key* keys, unsigned mask, unsigned hash_mask, int* count, int limit)
{
    RowShare own = share_of_row(rows, sampled, stride, share);
    if (!own.there) return;
    Table table = {keys, mask, hash_mask};
    OFFSET row = own.row, end = offsets[row + 1];
    for (long long entry = (long long)offsets[row] + own.first; entry < end; entry += share)
        if (inserted(table, bits_of(value_at(values, divisors, row, entry)), count, limit) < 0)
            return;
}

// The numbers of a vector.
extern "C" __global__ void gather_numbers(
    const double* __restrict__ numbers, OFFSET length, OFFSET sampled, OFFSET stride, Key* keys,
    unsigned mask, unsigned hash_mask, int* count, int limit)
{
    OFFSET i = thread_number(), at = sampled_row(i, stride);
    if (i < sampled && at < length)
        inserted(Table{keys, mask, hash_mask}, bits_of(numbers[at]), count, limit);
}

// The code of each number of a vector.
extern "C" __global__ void encode_numbers(
    const double* __restrict__ numbers, OFFSET length, Key* keys, const int* __restrict__ codes,
    unsigned mask, unsigned hash_mask, void* encoded, int width)
{
    OFFSET i = thread_number();
    if (i >= length) return;
    unsigned slot = slot_of(Table{keys, mask, hash_mask}, bits_of(numbers[i]));
    put_code(encoded, width, i, codes[slot]);
}

// The code of each entry's value.
extern "C" __global__ void encode_values(
    const OFFSET* __restrict__ offsets, const double* __restrict__ values,
    const double* __restrict__ divisors, OFFSET rows, Key* keys, const int* __restrict__ codes,
    unsigned mask, unsigned hash_mask, void* encoded, int width)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    Table table = {keys, mask, hash_mask};
    OFFSET end = offsets[row + 1];
    for (OFFSET entry = offsets[row]; entry < end; entry++) {
        unsigned slot = slot_of(table, bits_of(value_at(values, divisors, row, entry)));
        put_code(encoded, width, entry, codes[slot]);
    }
}

// The largest distance of a column from its row's state, on either side.
extern "C" __global__ void measure_distances(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const int* __restrict__ row_states, OFFSET rows, int* largest)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    int state = state_of(row_states, row), farthest = 0;
    OFFSET end = offsets[row + 1];
    for (OFFSET entry = offsets[row]; entry < end; entry++)
        farthest = max(farthest, abs(columns[entry] - state));
    if (farthest > *(volatile int*)largest) atomicMax(largest, farthest);
}

// The distance of each column from its row's state, in 16 bits.
extern "C" __global__ void encode_distances(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const int* __restrict__ row_states, OFFSET rows, short* distances)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    int state = state_of(row_states, row);
    OFFSET end = offsets[row + 1];
    for (OFFSET entry = offsets[row]; entry < end; entry++)
        distances[entry] = (short)(columns[entry] - state);
}
