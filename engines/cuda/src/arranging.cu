// States renumbered by colours, and the rows of an iteration matrix in that order.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.
//
// `sorted` holds the updates colour by colour: the new number of an update is its place there. States
// that are not computed come last.

// 1 for each state that no update computes, for a sum over them.
extern "C" __global__ void flag_unnamed(
    const int* __restrict__ update_of, int states, OFFSET* flags)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states) flags[state] = update_of[state] < 0;
}

// The states that no update computes, in ascending order; `places` are the inclusive sums.
extern "C" __global__ void place_unnamed(
    const int* __restrict__ update_of, int states, const OFFSET* __restrict__ places, int updates,
    int* order)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states && update_of[state] < 0) order[updates + places[state] - 1] = state;
}

// The state of each update, in the new order.
extern "C" __global__ void place_updates(
    const int* __restrict__ sorted, const int* __restrict__ states, int updates, int* order)
{
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < updates) order[place] = states ? states[sorted[place]] : sorted[place];
}

// The new number of each state.
extern "C" __global__ void invert_order(const int* __restrict__ order, int states, int* position)
{
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < states) position[order[place]] = place;
}

// How many rows each group has, in the new order; behind a zero.
extern "C" __global__ void count_group_rows(
    const OFFSET* __restrict__ groups, const int* __restrict__ sorted, int updates, OFFSET* counts)
{
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < updates) counts[place + 1] = groups[sorted[place] + 1] - groups[sorted[place]];
}

// Which row comes where, and where the colour of its update begins.
extern "C" __global__ void place_rows(
    const int* __restrict__ sorted, const int* __restrict__ colours,
    const int* __restrict__ bounds, int updates, const OFFSET* __restrict__ groups,
    const OFFSET* __restrict__ new_groups, OFFSET* rows, int* first_of_row)
{
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= updates) return;
    int update = sorted[place], first = bounds[colours[update]];
    OFFSET row = groups ? groups[update] : update;
    OFFSET last = groups ? groups[update + 1] : row + 1;
    OFFSET to = groups ? new_groups[place] : place;
    for (; row < last; row++, to++) {
        rows[to] = row;
        first_of_row[to] = first;
    }
}

// How many entries each row keeps, behind a zero, and the most of all: those of its own state go
// where the iteration matrix has no diagonal. A warp a row.
extern "C" __global__ void measure_rows(
    const OFFSET* __restrict__ rows, long long count, const OFFSET* __restrict__ offsets,
    const int* __restrict__ columns, const int* __restrict__ position, int without_diagonal,
    OFFSET* lengths, int* longest)
{
    long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= count) return;
    OFFSET begin = offsets[rows[row]], end = offsets[rows[row] + 1];
    OFFSET length = end - begin;
    if (without_diagonal) {
        length = 0;
        for (OFFSET entry = begin + threadIdx.x % 32; entry < end; entry += 32)
            length += position[columns[entry]] != row;
        for (int other = 16; other > 0; other /= 2)
            length += __shfl_down_sync(0xffffffff, length, other);
    }
    if (threadIdx.x % 32 > 0) return;
    lengths[row + 1] = length;
    if (length > *(volatile int*)longest) atomicMax(longest, (int)length);
}

// The rows with renumbered columns, entries for states of earlier colours first, each kind in the
// order it had. A warp a row.
extern "C" __global__ void gather_rows(
    const OFFSET* __restrict__ rows, const int* __restrict__ first_of_row, long long count,
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const int* __restrict__ position, int without_diagonal,
    const OFFSET* __restrict__ new_offsets, OFFSET* fresh_ends, int* new_columns,
    double* new_values)
{
    long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= count) return;
    int lane = threadIdx.x % 32, first = first_of_row[row];
    unsigned before = (1u << lane) - 1;
    OFFSET begin = offsets[rows[row]], end = offsets[rows[row] + 1];
    OFFSET to = new_offsets[row];
    for (int stale = 0; stale < 2; stale++) {
        for (OFFSET start = begin; start < end; start += 32) {
            OFFSET entry = start + lane;
            int column = entry < end ? position[columns[entry]] : -1;
            bool kept = column >= 0 && (column >= first) == stale;
            if (without_diagonal && column == row) kept = false;
            unsigned all = __ballot_sync(0xffffffff, kept);
            if (kept) {
                OFFSET place = to + __popc(all & before);
                new_columns[place] = column;
                new_values[place] = values[entry];
            }
            to += __popc(all);
        }
        if (stale == 0 && lane == 0) fresh_ends[row] = to;
    }
}

// The right-hand side in the order of the rows.
extern "C" __global__ void gather_offset(
    const double* __restrict__ offset, const OFFSET* __restrict__ rows, long long count,
    double* new_offset)
{
    long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < count) new_offset[row] = offset[rows[row]];
}

// Values by the states' own numbers become values in the new order.
extern "C" __global__ void gather_values(
    const double* __restrict__ values, const int* __restrict__ order, int states, double* arranged)
{
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < states) arranged[place] = values[order[place]];
}

// And back.
extern "C" __global__ void scatter_values(
    const double* __restrict__ arranged, const int* __restrict__ order, int states, double* values)
{
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < states) values[order[place]] = arranged[place];
}
