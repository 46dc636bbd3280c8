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
    for_own_rows(matrix, offset, states, rows, chunk, goes_back(x, x_new), x,
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
    unsigned block = own_block(goes_back(x, x_new));
    int number = (int)(((long long)block * blockDim.x + threadIdx.x) / 32);
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
    int first = own_block(goes_back(x, x_new)) * (blockDim.x / 32);
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
    Share share = own_share(groups, chunk, goes_back(x, x_new));
    for (; !share.is_over(); share.advance()) {
        unsigned group = share.number;
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
