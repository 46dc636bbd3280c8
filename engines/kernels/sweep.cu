// Sweeps of x <- (1 - omega) x + omega (b + A x), with the convergence test inside.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.
//
// Each sweep writes its largest change to a slot and reads the slot of the sweep before it. A sweep
// that finds its predecessor below `stop_below` passes that change on and leaves the vectors alone,
// so that sweeps may be queued far ahead of the host's look at them: the iterate stays that of the
// first sweep that met the test.
//
// `early` says when a sweep looks: before its work, which spares the work where sweeps are long, or
// after it, which hides the latency of the look where they are short.

__device__ double change_of(double before, double after, int absolute)
{
    // PRISM's measure: 0/0 and inf - inf are NaN, which no comparison lets through.
    double change = fabs(after - before);
    return absolute ? change : change / fabs(before);
}

__device__ void raise_slot(double change, double* slot)
{
    // Changes are not negative, so their bit patterns are ordered as they are. Reading first spares
    // nearly every atomic operation.
    if (change > *(volatile double*)slot)
        atomicMax((unsigned long long*)slot, (unsigned long long)__double_as_longlong(change));
}

__device__ void record(double change, double* slot)
{
    for (int lane = 16; lane > 0; lane /= 2) {
        double other = __shfl_down_sync(0xffffffff, change, lane);
        if (other > change) change = other;
    }
    __shared__ double of_warp[32];
    int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) of_warp[warp] = change;
    __syncthreads();
    if (threadIdx.x == 0) {
        int warps = (blockDim.x + 31) / 32;
        for (int w = 1; w < warps; w++)
            if (of_warp[w] > change) change = of_warp[w];
        raise_slot(change, slot);
    }
}

// Passes on the change of a sweep that met the test.
__device__ void pass_on(double change, double* slot)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) *slot = change;
}

// Stores a state's new value, unless the sweep before met the test, and returns its change.
__device__ double store(double* x_new, int state, double before, double after, int absolute,
                        double previous, bool over)
{
    if (over) return previous;
    x_new[state] = after;
    double change = change_of(before, after, absolute);
    return change > 0.0 ? change : 0.0;
}

// One thread a row.
extern "C" __global__ void sweep_rows_by_thread(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ offset,
    const int* __restrict__ states, int rows, double omega, const double* __restrict__ x,
    double* __restrict__ x_new, const double* before_slot, double* slot,
    double stop_below, int absolute, int early)
{
    double previous = *before_slot;
    bool over = previous < stop_below;
    if (early && over) return pass_on(previous, slot);
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    double change = 0.0;
    if (row < rows) {
        double total = offset ? offset[row] : 0.0;
        OFFSET end = offsets[row + 1];
        for (OFFSET entry = offsets[row]; entry < end; entry++)
            total += values[entry] * x[columns[entry]];
        int state = states ? states[row] : row;
        double before = x[state];
        double after = omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
        change = store(x_new, state, before, after, absolute, previous, over);
    }
    record(change, slot);
}

// One warp a row, for rows of a few dozen entries and more.
extern "C" __global__ void sweep_rows_by_warp(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ offset,
    const int* __restrict__ states, int rows, double omega, const double* __restrict__ x,
    double* __restrict__ x_new, const double* before_slot, double* slot,
    double stop_below, int absolute, int early)
{
    double previous = *before_slot;
    bool over = previous < stop_below;
    if (early && over) return pass_on(previous, slot);
    int row = (int)(((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32);
    int lane = threadIdx.x % 32;
    double change = 0.0;
    if (row < rows) {
        double total = 0.0;
        OFFSET end = offsets[row + 1];
        for (OFFSET entry = offsets[row] + lane; entry < end; entry += 32)
            total += values[entry] * x[columns[entry]];
        for (int other = 16; other > 0; other /= 2)
            total += __shfl_down_sync(0xffffffff, total, other);
        if (lane == 0) {
            if (offset) total += offset[row];
            int state = states ? states[row] : row;
            double before = x[state];
            double after = omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
            change = store(x_new, state, before, after, absolute, previous, over);
        }
    }
    record(change, slot);
}

// One block a row, where some rows are too long for a warp to finish in time.
extern "C" __global__ void sweep_rows_by_block(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ offset,
    const int* __restrict__ states, int rows, double omega, const double* __restrict__ x,
    double* __restrict__ x_new, const double* before_slot, double* slot,
    double stop_below, int absolute, int early)
{
    double previous = *before_slot;
    bool over = previous < stop_below;
    if (early && over) return pass_on(previous, slot);
    int row = blockIdx.x;
    double total = 0.0;
    OFFSET end = offsets[row + 1];
    for (OFFSET entry = offsets[row] + threadIdx.x; entry < end; entry += blockDim.x)
        total += values[entry] * x[columns[entry]];
    for (int other = 16; other > 0; other /= 2)
        total += __shfl_down_sync(0xffffffff, total, other);
    __shared__ double of_warp[32];
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < (blockDim.x + 31) / 32; warp++) total += of_warp[warp];
    if (offset) total += offset[row];
    int state = states ? states[row] : row;
    double before = x[state];
    double after = omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
    raise_slot(store(x_new, state, before, after, absolute, previous, over), slot);
}

// One thread a state of an MDP, over all its choices.
extern "C" __global__ void sweep_groups_by_thread(
    const OFFSET* __restrict__ group_offsets, const OFFSET* __restrict__ offsets,
    const int* __restrict__ columns, const double* __restrict__ values,
    const double* __restrict__ offset, const int* __restrict__ states, int groups, int minimise,
    const double* __restrict__ x, double* __restrict__ x_new, const double* before_slot,
    double* slot, double stop_below, int absolute, int early)
{
    double previous = *before_slot;
    bool over = previous < stop_below;
    if (early && over) return pass_on(previous, slot);
    int group = blockIdx.x * blockDim.x + threadIdx.x;
    double change = 0.0;
    if (group < groups) {
        OFFSET last_row = group_offsets[group + 1];
        OFFSET row = group_offsets[group];
        double infinity = __longlong_as_double(0x7ff0000000000000LL);
        double best = minimise ? infinity : -infinity;
        for (; row < last_row; row++) {
            double total = offset ? offset[row] : 0.0;
            OFFSET end = offsets[row + 1];
            for (OFFSET entry = offsets[row]; entry < end; entry++)
                total += values[entry] * x[columns[entry]];
            best = minimise ? fmin(best, total) : fmax(best, total);
        }
        int state = states ? states[group] : group;
        double before = x[state];
        change = store(x_new, state, before, best, absolute, previous, over);
    }
    record(change, slot);
}

// Ends a stretch of sweeps: appends its changes to the history, makes the last of them slot 0 of the
// next stretch and clears the other slots. One block of at least `sweeps` + 1 threads.
extern "C" __global__ void end_stretch(double* slots, double* history, int* length, int sweeps)
{
    int t = threadIdx.x;
    if (t >= 1 && t <= sweeps) history[*length + t - 1] = slots[t];
    double last = slots[sweeps];
    __syncthreads();
    if (t <= sweeps) slots[t] = t == 0 ? last : 0.0;
    if (t == 0) *length += sweeps;
}
