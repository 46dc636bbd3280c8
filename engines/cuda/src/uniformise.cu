// Sweeps of a uniformised chain, x <- P x, and the weighted sum of the iterates, in one kernel.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin, behind the headers of a matrix format (formats/).
//
// Row i of P is the rates of row i over `rate`, and `stay` on the diagonal. Sweep k adds its result
// times c_k, which it looks up by the number of sweeps made: a captured stretch of sweeps may be
// replayed, and the host need not look. Where c_k is 0, left of the window, the sum is not touched.
//
// A sweep that changes anything marks its slot, with 2 if it changes a value by more than a share of
// it and so much, else with 1: doubles, so that the largest of several devices' slots is that of all.
// A sweep that finds the slot before it unmarked has nothing to do, and leaves its own unmarked: the
// iterate has come to rest, and the host adds what is left of the sum. What is marked with less than
// 2 is steady.

struct Weights {
    const double* values;  // c_k from the window's first term on
    long long left;        // the window's first term
    long long count;       // terms of the window; c_k is 0 behind it
    double before;         // c_k before the window
};

__device__ double coefficient(const Weights& weights, long long k)
{
    if (k < weights.left) return weights.before;
    k -= weights.left;
    return k < weights.count ? weights.values[k] : 0.0;
}

// What values change by.
struct Changes {
    double share, least;
    bool any = false, large = false;

    __device__ void count(double before, double after)
    {
        any |= after != before;
        large |= fabs(after - before) > share * before + least;
    }

    // Every thread of the block takes part.
    __device__ void mark(double* slot) const
    {
        bool any_large = __syncthreads_or(large);
        bool changed = any_large || __syncthreads_or(any);
        if (changed && threadIdx.x == 0) raise_slot(any_large ? 2.0 : 1.0, slot);
    }
};

// Stores a state's new value and adds it to the sum.
__device__ void store(int row, int state, double inflow, const double* stay, double rate,
                      double before, double* x_new, double* sum, double c, Changes& changes)
{
    double after = stay[row] * before + inflow / rate;
    x_new[state] = after;
    if (c != 0.0) sum[row] += c * after;
    changes.count(before, after);
}

// One thread a row.
extern "C" __global__ void __launch_bounds__(THREAD_BOUNDS) uniformise_rows_by_thread(
    MATRIX_PARAMETERS, const int* __restrict__ states, const double* __restrict__ stay, int rows,
    int chunk, double rate, const double* __restrict__ x, double* __restrict__ x_new,
    double* __restrict__ sum, const double* __restrict__ weights, long long left,
    long long count, double before, const long long* __restrict__ made, double share,
    double least, int sweep, const double* before_slot, double* slot)
{
    if (*before_slot == 0.0) return;
    Matrix matrix = opened(MATRIX);
    double c = coefficient(Weights{weights, left, count, before}, *made + sweep);
    Changes changes{share, least};
    for_own_rows(matrix, nullptr, states, rows, chunk, goes_back(x, x_new), x,
                 [&](int number, int state, const Row& row, double before, double, double inflow) {
                     inflow = finished(row, inflow);
                     store(number, state, inflow, stay, rate, before, x_new, sum, c, changes);
                 });
    changes.mark(slot);
}

// One warp a row, for rows of a few dozen entries and more.
extern "C" __global__ void __launch_bounds__(WARP_BOUNDS) uniformise_rows_by_warp(
    MATRIX_PARAMETERS, const int* __restrict__ states, const double* __restrict__ stay, int rows,
    int, double rate, const double* __restrict__ x, double* __restrict__ x_new,
    double* __restrict__ sum, const double* __restrict__ weights, long long left,
    long long count, double before, const long long* __restrict__ made, double share,
    double least, int sweep, const double* before_slot, double* slot)
{
    if (*before_slot == 0.0) return;
    Matrix matrix = opened(MATRIX);
    double c = coefficient(Weights{weights, left, count, before}, *made + sweep);
    unsigned block = own_block(goes_back(x, x_new));
    int number = (int)(((long long)block * blockDim.x + threadIdx.x) / 32);
    int lane = threadIdx.x % 32;
    Changes changes{share, least};
    if (number < rows) {
        int state = states ? states[number] : number;
        Row row = row_number(matrix, number, state);
        double inflow = finished(row, over_warp(with_products(matrix, row, lane, 32, x, 0.0)));
        if (lane == 0)
            store(number, state, inflow, stay, rate, x[state], x_new, sum, c, changes);
    }
    changes.mark(slot);
}

// As many rows a block as it has warps, where some rows are too long for a warp to finish in time.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) uniformise_rows_by_block(
    MATRIX_PARAMETERS, const int* __restrict__ states, const double* __restrict__ stay, int rows,
    int, double rate, const double* __restrict__ x, double* __restrict__ x_new,
    double* __restrict__ sum, const double* __restrict__ weights, long long left,
    long long count, double before, const long long* __restrict__ made, double share,
    double least, int sweep, const double* before_slot, double* slot)
{
    if (*before_slot == 0.0) return;
    Matrix matrix = opened(MATRIX);
    double c = coefficient(Weights{weights, left, count, before}, *made + sweep);
    Changes changes{share, least};
    int first = own_block(goes_back(x, x_new)) * (blockDim.x / 32);
    for_rows_of_block(matrix, states, first, rows, x,
                      [&](int number, int state, const Row&, double inflow) {
                          store(number, state, inflow, stay, rate, x[state], x_new, sum, c,
                                changes);
                      });
    changes.mark(slot);
}

// Ends a stretch of sweeps: counts them, notes the first that changed nothing and the first that was
// steady, makes the last slot slot 0 of the next stretch and clears the others. `made` holds the
// sweeps made and those two, 0 for none. One block of at least `sweeps` + 1 threads.
extern "C" __global__ void end_uniformise_stretch(double* slots, long long* made, int sweeps)
{
    int t = threadIdx.x;
    double last = slots[sweeps];
    __shared__ int steady;
    if (t == 0) steady = sweeps + 1;
    __syncthreads();
    if (t >= 1 && t <= sweeps) {
        if (slots[t] == 0.0 && slots[t - 1] != 0.0) made[1] = made[0] + t;
        if (slots[t] < 2.0) atomicMin(&steady, t);
    }
    __syncthreads();
    if (t == 0 && steady <= sweeps && made[2] == 0) made[2] = made[0] + steady;
    if (t <= sweeps) slots[t] = t == 0 ? last : 0.0;
    if (t == 0) made[0] += sweeps;
}
