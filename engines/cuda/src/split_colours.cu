// Gauss-Seidel sweeps in colours whose matrix comes part by part: the sums of a colour's rows are
// collected in a vector of their own, and stored as its new values once all parts have been seen.
//
// Compiled with OFFSET the type of the row offsets; parts are counted from their own first row and
// entry. The iterate is one vector: a colour is written when nobody reads its old values any more.

// Adds the products of a part to the sums of its rows; `lanes` threads a row, 1 or 32.
extern "C" __global__ void add_part(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, int rows, int lanes, const double* __restrict__ x,
    double* sums)
{
    long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long row = thread / lanes;
    int lane = (int)(thread % lanes);
    // Whole warps leave together: with 32 lanes a row is a warp.
    if (row >= rows) return;
    double total = 0.0;
    OFFSET end = offsets[row + 1];
    for (OFFSET entry = offsets[row] + lane; entry < end; entry += lanes)
        total += values[entry] * x[columns[entry]];
    if (lanes == 32)
        for (int other = 16; other > 0; other /= 2)
            total += __shfl_down_sync(0xffffffff, total, other);
    if (lane == 0) sums[row] += total;
}

// Ends a colour: its sums become its states' new values, `x` and `sums` beginning with its first
// state and row. Where `keep` is 0, only the change is taken. `x` may lie in the host's memory.
extern "C" __global__ void end_colour(
    const double* __restrict__ sums, const OFFSET* __restrict__ group_offsets, int states,
    int minimise, double omega, double* x, double* slot, int absolute, int keep)
{
    int state = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    double change = 0.0;
    if (state < states) {
        double before = x[state], after;
        if (group_offsets) {
            double infinity = __longlong_as_double(0x7ff0000000000000LL);
            after = minimise ? infinity : -infinity;
            OFFSET first = group_offsets[0], end = group_offsets[state + 1];
            for (OFFSET row = group_offsets[state]; row < end; row++)
                after = minimise ? fmin(after, sums[row - first]) : fmax(after, sums[row - first]);
        } else {
            double total = sums[state];
            after = omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
        }
        // PRISM's measure: 0/0 and inf - inf are NaN, which no comparison lets through.
        change = fabs(after - before);
        if (!absolute) change /= fabs(before);
        if (!(change > 0.0)) change = 0.0;
        if (keep) x[state] = after;
    }
    record_colour(change, slot);
}
