// Sweeps of x <- (1 - omega) x + omega (b + A x), with the convergence test inside.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin, behind the headers of a matrix format (formats/). REAL is the type of the vectors and
// of values that each entry has of its own, double or float; sums are double, and ROUNDED makes what
// is stored of them: nothing for double, a conversion that rounds to nearest or down for float.
//
// Each sweep writes its largest change to a slot and reads the slot of the sweep before it. A sweep
// that finds its predecessor below `stop_below` passes that change on and leaves the vectors alone,
// so that sweeps may be queued far ahead of the host's look at them: the iterate stays that of the
// first sweep that met the test.
//
// `early` says when a sweep looks: before its work, which spares the work where sweeps are long, or
// after it, which hides the latency of the look where they are short.

// What is below a quotient by no more than this share may be so by rounding alone.
#define NEARLY (1.0 - 1.0 / (1 << 20))

// What a change is relative to.
__device__ double scale_of(double before)
{
#ifdef LEAST_SCALE
    // Near the end of float's range a value has no digits left, and jumps.
    return fmax(fabs(before), LEAST_SCALE);
#else
    return fabs(before);
#endif
}

// Raises the largest change so far to a state's, by PRISM's measure. 0/0 and inf - inf are NaN,
// which no comparison lets through; a rise from 0 is infinite. A quotient is taken only where it
// may matter: divisions are long.
__device__ void raise_change(double& largest, double before, double after, int absolute)
{
    double change = fabs(after - before);
    double scale = absolute ? 1.0 : scale_of(before);
    if (change > largest * (NEARLY * scale)) {
        if (!absolute) change /= scale;
        if (change > largest) largest = change;
    }
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

// Stores a state's new value and raises the largest change; a sweep that comes after one that met
// the test passes on that one's change instead.
__device__ void store(REAL* x_new, int state, double before, double after, int absolute,
                      double previous, bool over, double& largest)
{
    if (over) {
        largest = previous;
        return;
    }
    REAL kept = ROUNDED(after);
    x_new[state] = kept;
    raise_change(largest, before, kept, absolute);
}

// The relaxed value of a state.
__device__ double relaxed(double before, double total, double omega)
{
    return omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
}

// One thread a row.
extern "C" __global__ void __launch_bounds__(THREAD_BOUNDS) sweep_rows_by_thread(
    MATRIX_PARAMETERS, const REAL* __restrict__ offset, const int* __restrict__ states, int rows,
    int chunk, double omega, const REAL* __restrict__ x, REAL* __restrict__ x_new,
    const double* before_slot, double* slot, double stop_below, int absolute, int early)
{
    double previous = *before_slot;
    bool over = previous < stop_below;
    if (early && over) return pass_on(previous, slot);
    Matrix matrix = opened(MATRIX);
    double change = 0.0;
    for_own_rows(matrix, offset, states, rows, chunk, x,
                 [&](int, int state, const Row& row, double before, double start, double sum) {
                     double after = relaxed(before, total_of(matrix, row, start, sum), omega);
                     store(x_new, state, before, after, absolute, previous, over, change);
                 });
    record(change, slot);
}

// One warp a row, for rows of a few dozen entries and more.
extern "C" __global__ void __launch_bounds__(WARP_BOUNDS) sweep_rows_by_warp(
    MATRIX_PARAMETERS, const REAL* __restrict__ offset, const int* __restrict__ states, int rows,
    int, double omega, const REAL* __restrict__ x, REAL* __restrict__ x_new,
    const double* before_slot, double* slot, double stop_below, int absolute, int early)
{
    double previous = *before_slot;
    bool over = previous < stop_below;
    if (early && over) return pass_on(previous, slot);
    Matrix matrix = opened(MATRIX);
    int number = (int)(((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32);
    int lane = threadIdx.x % 32;
    double change = 0.0;
    if (number < rows) {
        int state = states ? states[number] : number;
        Row row = row_number(matrix, number, state);
        double sum = over_warp(with_products(matrix, row, lane, 32, x, 0.0));
        if (lane == 0) {
            double total = given(matrix, row, offset, number) + finished(row, sum);
            double before = x[state];
            double after = relaxed(before, total, omega);
            store(x_new, state, before, after, absolute, previous, over, change);
        }
    }
    record(change, slot);
}

// As many rows a block as it has warps, where some rows are too long for a warp to finish in time.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) sweep_rows_by_block(
    MATRIX_PARAMETERS, const REAL* __restrict__ offset, const int* __restrict__ states, int rows,
    int, double omega, const REAL* __restrict__ x, REAL* __restrict__ x_new,
    const double* before_slot, double* slot, double stop_below, int absolute, int early)
{
    double previous = *before_slot;
    bool over = previous < stop_below;
    if (early && over) return pass_on(previous, slot);
    Matrix matrix = opened(MATRIX);
    double change = 0.0;
    int first = blockIdx.x * (blockDim.x / 32);
    for_rows_of_block(matrix, states, first, rows, x,
                      [&](int number, int state, const Row& row, double sum) {
                          double total = given(matrix, row, offset, number) + sum;
                          double before = x[state];
                          double after = relaxed(before, total, omega);
                          store(x_new, state, before, after, absolute, previous, over, change);
                      });
    record(change, slot);
}

// One thread a state of an MDP, over all its choices.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) sweep_groups_by_thread(
    const OFFSET* __restrict__ group_offsets, MATRIX_PARAMETERS, const REAL* __restrict__ offset,
    const int* __restrict__ states, int groups, int chunk, int minimise,
    const REAL* __restrict__ x, REAL* __restrict__ x_new, const double* before_slot,
    double* slot, double stop_below, int absolute, int early)
{
    double previous = *before_slot;
    bool over = previous < stop_below;
    if (early && over) return pass_on(previous, slot);
    Matrix matrix = opened(MATRIX);
    double change = 0.0;
    unsigned end = own_end(groups, chunk);
    for (unsigned group = own_begin(chunk); group < end; group += blockDim.x) {
        int state = states ? states[group] : group;
        OFFSET last_row = group_offsets[group + 1];
        OFFSET row = group_offsets[group];
        double infinity = __longlong_as_double(0x7ff0000000000000LL);
        double best = minimise ? infinity : -infinity;
        for (; row < last_row; row++) {
            double total = row_total(matrix, row, state, offset, x);
            best = minimise ? fmin(best, total) : fmax(best, total);
        }
        store(x_new, state, x[state], best, absolute, previous, over, change);
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
