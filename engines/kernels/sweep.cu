// Sweeps of x <- (1 - omega) x + omega (b + A x), with the convergence test inside.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.
//
// The changes of successive sweeps lie in `changes`: sweep t of a launch sequence writes the slot
// *base + t and reads the one before it. A sweep that finds its predecessor below `stop_below`
// passes that change on and leaves the vectors alone, so that sweeps may be queued far ahead of
// the host's look at them: the iterate stays that of the first sweep that met the test.

__device__ double change_of(double before, double after, int absolute)
{
    // PRISM's measure: 0/0 and inf - inf are NaN, which no comparison lets through.
    double change = fabs(after - before);
    return absolute ? change : change / fabs(before);
}

__device__ void record(double change, double* slot)
{
    // Changes are not negative, so their bit patterns are ordered as they are.
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
        // Reading first spares nearly every atomic operation.
        if (change > *(volatile double*)slot)
            atomicMax((unsigned long long*)slot, (unsigned long long)__double_as_longlong(change));
    }
}

__device__ bool finished(double* changes, int slot, double stop_below)
{
    double before = changes[slot - 1];
    if (!(before < stop_below)) return false;
    if (blockIdx.x == 0 && threadIdx.x == 0) changes[slot] = before;
    return true;
}

// One thread a row.
extern "C" __global__ void sweep_rows_by_thread(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ offset,
    const int* __restrict__ states, int rows, double omega, const double* __restrict__ x,
    double* __restrict__ x_new, double* changes, const int* base, int t, double stop_below,
    int absolute)
{
    int slot = *base + t;
    if (finished(changes, slot, stop_below)) return;
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
        x_new[state] = after;
        change = change_of(before, after, absolute);
        if (!(change > 0.0)) change = 0.0;
    }
    record(change, &changes[slot]);
}

// One warp a row, for rows of a few dozen entries and more.
extern "C" __global__ void sweep_rows_by_warp(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ offset,
    const int* __restrict__ states, int rows, double omega, const double* __restrict__ x,
    double* __restrict__ x_new, double* changes, const int* base, int t, double stop_below,
    int absolute)
{
    int slot = *base + t;
    if (finished(changes, slot, stop_below)) return;
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
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
            x_new[state] = after;
            change = change_of(before, after, absolute);
            if (!(change > 0.0)) change = 0.0;
        }
    }
    record(change, &changes[slot]);
}

// One thread a state of an MDP, over all its choices.
extern "C" __global__ void sweep_groups_by_thread(
    const OFFSET* __restrict__ group_offsets, const OFFSET* __restrict__ offsets,
    const int* __restrict__ columns, const double* __restrict__ values,
    const double* __restrict__ offset, const int* __restrict__ states, int groups, int minimise,
    const double* __restrict__ x, double* __restrict__ x_new, double* changes, const int* base,
    int t, double stop_below, int absolute)
{
    int slot = *base + t;
    if (finished(changes, slot, stop_below)) return;
    int group = blockIdx.x * blockDim.x + threadIdx.x;
    double change = 0.0;
    if (group < groups) {
        OFFSET last_row = group_offsets[group + 1];
        OFFSET row = group_offsets[group];
        double best = minimise ? INFINITY : -INFINITY;
        for (; row < last_row; row++) {
            double total = offset ? offset[row] : 0.0;
            OFFSET end = offsets[row + 1];
            for (OFFSET entry = offsets[row]; entry < end; entry++)
                total += values[entry] * x[columns[entry]];
            best = minimise ? fmin(best, total) : fmax(best, total);
        }
        int state = states ? states[group] : group;
        double before = x[state];
        x_new[state] = best;
        change = change_of(before, best, absolute);
        if (!(change > 0.0)) change = 0.0;
    }
    record(change, &changes[slot]);
}

// Opens the next stretch of slots; the last kernel of every queued stretch.
extern "C" __global__ void advance(int* base, int sweeps)
{
    *base += sweeps;
}
