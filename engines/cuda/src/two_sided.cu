// Two-sided sweeps x <- b + A x of a lower and an upper iterate, with the width in the kernel.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin, behind the headers of a matrix format (formats/) that need not divide.
//
// The two iterates lie side by side, so that one look-up fetches both. A row's sum is off by less
// than (its entries + slack) units of roundoff, in whatever order it is taken: the lower
// value is made smaller by as much, the upper one greater.
//
// A sweep's record is SLOT numbers from its slot on: largest width, largest rise of an upper value,
// largest fall of a lower one, largest crossing, and whether anything moved. A sweep that finds the
// width of its predecessor below `stop_below` passes it on and leaves the iterates alone.

#define SLOT 8
#define UNIT_ROUNDOFF 1.1102230246251565e-16
#define SMALLEST 8.9002954340288055e-308

struct Switches {
    int minimise;
    int monotonic_below;
    int monotonic_above;
    int absolute;
    int slack;
};

__device__ void raise_slot(double value, double* slot)
{
    // Values are not negative, so their bit patterns are ordered as they are.
    if (value > *(volatile double*)slot)
        atomicMax((unsigned long long*)slot, (unsigned long long)__double_as_longlong(value));
}

__device__ void record_width(double width, double* slot)
{
    for (int lane = 16; lane > 0; lane /= 2) {
        double other = __shfl_down_sync(0xffffffff, width, lane);
        if (other > width) width = other;
    }
    __shared__ double of_warp[32];
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = width;
    __syncthreads();
    if (threadIdx.x == 0) {
        int warps = (blockDim.x + 31) / 32;
        for (int w = 1; w < warps; w++)
            if (of_warp[w] > width) width = of_warp[w];
        raise_slot(width, slot);
    }
}

__device__ double2 widened(double2 sums, OFFSET length, int slack)
{
    double rounding = ((double)length + slack) * UNIT_ROUNDOFF;
    double smallest = ((double)length + 1.0) * SMALLEST;
    sums.x = sums.x * (1.0 - rounding) - smallest;
    sums.y = sums.y * (1.0 + rounding) + smallest;
    return sums;
}

// Stores a state's new bounds, records what they did, and returns their width.
__device__ double store(double2* x_new, int state, double2 before, double2 after,
                        const Switches& switches, double* slot)
{
    after.x = fmax(after.x, 0.0);
    if (after.y > before.y) {
        raise_slot((after.y - before.y) / before.y, slot + 1);
        if (switches.monotonic_above) after.y = before.y;
    }
    if (after.x < before.x) {
        raise_slot((before.x - after.x) / before.x, slot + 2);
        if (switches.monotonic_below) after.x = before.x;
    }
    if (after.x != before.x || after.y != before.y) raise_slot(1.0, slot + 4);
    x_new[state] = after;
    double width = after.y - after.x;
    if (width < 0.0) raise_slot(-width, slot + 3);
    if (!(width > 0.0)) return 0.0;
    return switches.absolute ? width : width / after.x;
}

// One thread a row.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) sweep_rows_two_sided_by_thread(
    MATRIX_PARAMETERS, const double* __restrict__ offset, const int* __restrict__ states, int rows,
    int chunk, const double2* __restrict__ x, double2* __restrict__ x_new,
    const double* before_slot, double* slot, double stop_below, int monotonic_below,
    int monotonic_above, int absolute, int slack)
{
    if (*before_slot < stop_below) {
        if (blockIdx.x == 0 && threadIdx.x == 0) *slot = *before_slot;
        return;
    }
    Matrix matrix = opened(MATRIX);
    Switches switches = {0, monotonic_below, monotonic_above, absolute, slack};
    double widest = 0.0;
    for_own_rows(matrix, offset, states, rows, chunk, goes_back(x, x_new), x,
                 [&](int, int state, const Row& row, double2 before, double, double2 sums) {
                     sums = widened(sums, row.length, slack);
                     double width = store(x_new, state, before, sums, switches, slot);
                     if (width > widest) widest = width;
                 });
    record_width(widest, slot);
}

// One warp a row, for rows of a few dozen entries and more.
extern "C" __global__ void __launch_bounds__(WARP_BOUNDS) sweep_rows_two_sided_by_warp(
    MATRIX_PARAMETERS, const double* __restrict__ offset, const int* __restrict__ states, int rows,
    int, const double2* __restrict__ x, double2* __restrict__ x_new, const double* before_slot,
    double* slot, double stop_below, int monotonic_below, int monotonic_above, int absolute,
    int slack)
{
    if (*before_slot < stop_below) {
        if (blockIdx.x == 0 && threadIdx.x == 0) *slot = *before_slot;
        return;
    }
    Matrix matrix = opened(MATRIX);
    Switches switches = {0, monotonic_below, monotonic_above, absolute, slack};
    unsigned block = own_block(goes_back(x, x_new));
    int number = (int)(((long long)block * blockDim.x + threadIdx.x) / 32);
    int lane = threadIdx.x % 32;
    double width = 0.0;
    if (number < rows) {
        int state = states ? states[number] : number;
        Row row = row_number(matrix, number, state);
        double2 sums = with_products(matrix, row, lane, 32, x, double2{0.0, 0.0});
        sums.x = over_warp(sums.x);
        sums.y = over_warp(sums.y);
        if (lane == 0) {
            double start = given(matrix, row, offset, number);
            sums.x += start;
            sums.y += start;
            sums = widened(sums, row.length, slack);
            width = store(x_new, state, x[state], sums, switches, slot);
        }
    }
    record_width(width, slot);
}

// One thread a state of an MDP, over all its choices.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) sweep_groups_two_sided_by_thread(
    const OFFSET* __restrict__ group_offsets, MATRIX_PARAMETERS, const double* __restrict__ offset,
    const int* __restrict__ states, int groups, int chunk, int minimise,
    const double2* __restrict__ x, double2* __restrict__ x_new, const double* before_slot,
    double* slot, double stop_below, int monotonic_below, int monotonic_above, int absolute,
    int slack)
{
    if (*before_slot < stop_below) {
        if (blockIdx.x == 0 && threadIdx.x == 0) *slot = *before_slot;
        return;
    }
    Matrix matrix = opened(MATRIX);
    Switches switches = {minimise, monotonic_below, monotonic_above, absolute, slack};
    double widest = 0.0;
    Share share = own_share(groups, chunk, goes_back(x, x_new));
    for (; !share.is_over(); share.advance()) {
        unsigned group = share.number;
        int state = states ? states[group] : group;
        double infinity = __longlong_as_double(0x7ff0000000000000LL);
        double2 best = {minimise ? infinity : -infinity, minimise ? infinity : -infinity};
        OFFSET last_row = group_offsets[group + 1];
        for (OFFSET number = group_offsets[group]; number < last_row; number++) {
            Row row = row_number(matrix, number, state);
            double start = given(matrix, row, offset, number);
            double2 sums = with_products(matrix, row, 0, 1, x, double2{start, start});
            sums = widened(sums, row.length, slack);
            best.x = minimise ? fmin(best.x, sums.x) : fmax(best.x, sums.x);
            best.y = minimise ? fmin(best.y, sums.y) : fmax(best.y, sums.y);
        }
        double width = store(x_new, state, x[state], best, switches, slot);
        if (width > widest) widest = width;
    }
    record_width(widest, slot);
}

// Replaces the upper bounds by the lower ones plus a distance, and clears the first slot's width.
extern "C" __global__ void end_two_sided_guess(
    const int* __restrict__ states, int count, double2* x, double distance, int absolute,
    double* slots)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) *slots = __longlong_as_double(0x7ff0000000000000LL);
    if (i >= count) return;
    int state = states ? states[i] : i;
    double lower = x[state].x;
    x[state].y = lower + (absolute ? distance : distance * lower);
}

// Ends a stretch of sweeps: appends its records to the history, makes the last of them slot 0 of
// the next stretch and clears the other slots. One block of at least (`sweeps` + 1) * SLOT threads.
extern "C" __global__ void end_two_sided_stretch(
    double* slots, double* history, int* length, int sweeps)
{
    int t = threadIdx.x;
    int used = (sweeps + 1) * SLOT;
    if (t >= SLOT && t < used) history[(long long)*length * SLOT + t - SLOT] = slots[t];
    double last = t < SLOT ? slots[sweeps * SLOT + t] : 0.0;
    __syncthreads();
    if (t < used) slots[t] = last;
    if (t == 0) *length += sweeps;
}
