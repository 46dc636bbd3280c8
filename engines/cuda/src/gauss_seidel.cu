// Gauss-Seidel sweeps of x <- (1 - omega) x + omega (b + A x) in colours: one launch a colour.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.
//
// Row i computes state i, and a colour is a range of rows. Each row's entries for states of earlier
// colours come first, up to its `fresh_ends`: they read what this sweep has written to `x_new`, the
// others read `x`. A launch writes only its own colour, which none of its rows reads from `x_new`:
// so the result does not depend on the order of the threads.

// One thread a row; rows `first` to `last` - 1 are the colour.
extern "C" __global__ void sweep_rows_of_colour_by_thread(
    const OFFSET* __restrict__ offsets, const OFFSET* __restrict__ fresh_ends,
    const int* __restrict__ columns, const double* __restrict__ values,
    const double* __restrict__ offset, int first, int last, double omega,
    const double* __restrict__ x, double* x_new, const double* before_slot, double* slot,
    double stop_below, int absolute)
{
    double previous = *before_slot;
    if (previous < stop_below) return pass_change_on(previous, slot);
    int row = first + (int)(blockIdx.x * blockDim.x + threadIdx.x);
    double change = 0.0;
    if (row < last) {
        double total = offset ? offset[row] : 0.0;
        OFFSET entry = offsets[row], fresh = fresh_ends[row], end = offsets[row + 1];
        for (; entry < fresh; entry++) total += values[entry] * x_new[columns[entry]];
        for (; entry < end; entry++) total += values[entry] * x[columns[entry]];
        double before = x[row];
        double after = omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
        change = store_fresh(x_new, row, before, after, absolute);
    }
    record_colour(change, slot);
}

// One warp a row, for rows of a few dozen entries and more.
extern "C" __global__ void sweep_rows_of_colour_by_warp(
    const OFFSET* __restrict__ offsets, const OFFSET* __restrict__ fresh_ends,
    const int* __restrict__ columns, const double* __restrict__ values,
    const double* __restrict__ offset, int first, int last, double omega,
    const double* __restrict__ x, double* x_new, const double* before_slot, double* slot,
    double stop_below, int absolute)
{
    double previous = *before_slot;
    if (previous < stop_below) return pass_change_on(previous, slot);
    long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long row = first + thread / 32;
    int lane = threadIdx.x % 32;
    double change = 0.0;
    if (row < last) {
        double total = 0.0;
        OFFSET begin = offsets[row], fresh = fresh_ends[row], end = offsets[row + 1];
        for (OFFSET entry = begin + lane; entry < end; entry += 32)
            total += values[entry] * (entry < fresh ? x_new : x)[columns[entry]];
        for (int other = 16; other > 0; other /= 2)
            total += __shfl_down_sync(0xffffffff, total, other);
        if (lane == 0) {
            if (offset) total += offset[row];
            double before = x[row];
            double after = omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
            change = store_fresh(x_new, (int)row, before, after, absolute);
        }
    }
    record_colour(change, slot);
}

// One block a row, where some rows are too long for a warp to finish in time.
extern "C" __global__ void sweep_rows_of_colour_by_block(
    const OFFSET* __restrict__ offsets, const OFFSET* __restrict__ fresh_ends,
    const int* __restrict__ columns, const double* __restrict__ values,
    const double* __restrict__ offset, int first, int last, double omega,
    const double* __restrict__ x, double* x_new, const double* before_slot, double* slot,
    double stop_below, int absolute)
{
    double previous = *before_slot;
    if (previous < stop_below) return pass_change_on(previous, slot);
    int row = first + (int)blockIdx.x;
    if (row >= last) return;
    double total = 0.0;
    OFFSET begin = offsets[row], fresh = fresh_ends[row], end = offsets[row + 1];
    for (OFFSET entry = begin + threadIdx.x; entry < end; entry += blockDim.x)
        total += values[entry] * (entry < fresh ? x_new : x)[columns[entry]];
    for (int other = 16; other > 0; other /= 2)
        total += __shfl_down_sync(0xffffffff, total, other);
    __shared__ double of_warp[32];
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < (blockDim.x + 31) / 32; warp++) total += of_warp[warp];
    if (offset) total += offset[row];
    double before = x[row];
    double after = omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
    raise_sweep_slot(store_fresh(x_new, row, before, after, absolute), slot);
}

// One thread a state of an MDP, over all its choices; groups `first` to `last` - 1 are the colour.
extern "C" __global__ void sweep_groups_of_colour_by_thread(
    const OFFSET* __restrict__ group_offsets, const OFFSET* __restrict__ offsets,
    const OFFSET* __restrict__ fresh_ends, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ offset, int first, int last,
    int minimise, const double* __restrict__ x, double* x_new, const double* before_slot,
    double* slot, double stop_below, int absolute)
{
    double previous = *before_slot;
    if (previous < stop_below) return pass_change_on(previous, slot);
    int group = first + (int)(blockIdx.x * blockDim.x + threadIdx.x);
    double change = 0.0;
    if (group < last) {
        OFFSET last_row = group_offsets[group + 1];
        double infinity = __longlong_as_double(0x7ff0000000000000LL);
        double best = minimise ? infinity : -infinity;
        for (OFFSET row = group_offsets[group]; row < last_row; row++) {
            double total = offset ? offset[row] : 0.0;
            OFFSET entry = offsets[row], fresh = fresh_ends[row], end = offsets[row + 1];
            for (; entry < fresh; entry++) total += values[entry] * x_new[columns[entry]];
            for (; entry < end; entry++) total += values[entry] * x[columns[entry]];
            best = minimise ? fmin(best, total) : fmax(best, total);
        }
        change = store_fresh(x_new, group, x[group], best, absolute);
    }
    record_colour(change, slot);
}

// Ends a stretch of sweeps: appends its changes to the history, makes the last of them slot 0 of the
// next stretch and clears the other slots. One block of at least `sweeps` + 1 threads.
extern "C" __global__ void end_stretch_of_colours(
    double* slots, double* history, int* length, int sweeps)
{
    int t = threadIdx.x;
    int made = *length;
    if (t >= 1 && t <= sweeps) history[made + t - 1] = slots[t];
    double last = slots[sweeps];
    __syncthreads();
    if (t <= sweeps) slots[t] = t == 0 ? last : 0.0;
    if (t == 0) *length = made + sweeps;
}
