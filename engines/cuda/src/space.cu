// Directions of iterates, for GMRES over stretches of sweeps; and how far an iterate is from another.
//
// `table` holds the addresses of up to MOST directions, first of their changes, then of their steps.
// Sums are taken in an order that does not depend on races. Blocks of SUM_THREADS.

#define MOST 10
#define SUM_THREADS 256
#define SUM_BLOCKS 256
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)

struct Directions {
    const double* changes[MOST];
    const double* steps[MOST];
};

__device__ long long own_state() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }

// Bit patterns of non-negative numbers are ordered; what is no number is larger than any.
__device__ void keep_largest(double value, double* slot)
{
    for (int lane = 16; lane > 0; lane /= 2) {
        double other = __shfl_down_sync(0xffffffff, value, lane);
        if (other > value || other != other) value = other;
    }
    if (threadIdx.x % 32 == 0 && !(value <= *(volatile double*)slot))
        atomicMax((unsigned long long*)slot, (unsigned long long)__double_as_longlong(fabs(value)));
}

// Compares what a stretch has made of x with it, in units of `least`, and with what it made of the
// iterate before. `worst` takes the largest change, the largest value in these units, and the
// largest value, infinite where one has become so. States that stay as they are, infinite ones among
// them, have not changed.
extern "C" __global__ void compare_stretch(
    const double* __restrict__ present, const double* __restrict__ x,
    const double* __restrict__ least, double* last_after, double* last_change, int is_first,
    double* change, double* step, double* worst, long long states)
{
    long long state = own_state();
    double largest_change = 0.0, reach = 0.0, largest = 0.0;
    if (state < states) {
        double after = present[state], unit = least[state];
        double before = last_after[state], moved = after == x[state] ? 0.0 : after - x[state];
        double measured = unit > 0.0 ? moved / unit : 0.0;
        largest_change = unit > 0.0 || moved == 0.0 ? fabs(measured) : INFINITE;
        if (isfinite(after)) {
            if (after > 0.0) reach = unit > 0.0 ? after / unit : INFINITE;
            largest = after;
        } else if (moved != 0.0) {
            largest_change = reach = largest = INFINITE;
        }
        step[state] = is_first || after == before ? 0.0 : after - before;
        change[state] = is_first ? 0.0 : measured - last_change[state];
        last_after[state] = after;
        last_change[state] = measured;
    }
    keep_largest(largest_change, worst);
    keep_largest(reach, worst + 1);
    keep_largest(largest, worst + 2);
}

// Part of the products of a vector with the changes of all directions: SUM_BLOCKS blocks.
extern "C" __global__ void multiply(
    const Directions* __restrict__ table, int count, const double* __restrict__ vector,
    double* parts, long long states)
{
    __shared__ double shared[SUM_THREADS];
    double sums[MOST] = {};
    for (long long state = own_state(); state < states; state += SUM_THREADS * SUM_BLOCKS) {
        double value = vector[state];
#pragma unroll
        for (int place = 0; place < MOST; place++)
            if (place < count) sums[place] += value * table->changes[place][state];
    }
#pragma unroll
    for (int place = 0; place < MOST; place++) {
        if (place >= count) break;
        shared[threadIdx.x] = sums[place];
        __syncthreads();
        for (int reach = SUM_THREADS / 2; reach > 0; reach /= 2) {
            if (threadIdx.x < reach) shared[threadIdx.x] += shared[threadIdx.x + reach];
            __syncthreads();
        }
        if (threadIdx.x == 0) parts[place * SUM_BLOCKS + blockIdx.x] = shared[0];
        __syncthreads();
    }
}

// Adds the parts up. One block.
extern "C" __global__ void add_parts(const double* __restrict__ parts, int count, double* sums)
{
    __shared__ double shared[SUM_THREADS];
    for (int place = 0; place < count; place++) {
        shared[threadIdx.x] = parts[place * SUM_BLOCKS + threadIdx.x];
        __syncthreads();
        for (int reach = SUM_THREADS / 2; reach > 0; reach /= 2) {
            if (threadIdx.x < reach) shared[threadIdx.x] += shared[threadIdx.x + reach];
            __syncthreads();
        }
        if (threadIdx.x == 0) sums[place] = shared[0];
        __syncthreads();
    }
}

// Takes away from a change, and from its step, their shares of all directions.
extern "C" __global__ void take_away(
    const Directions* __restrict__ table, int count, const double* __restrict__ shares,
    double* change, double* step, long long states)
{
    long long state = own_state();
    if (state >= states) return;
    double of_change = change[state], of_step = step[state];
    for (int place = 0; place < count; place++) {
        of_change -= shares[place] * table->changes[place][state];
        of_step -= shares[place] * table->steps[place][state];
    }
    change[state] = of_change;
    step[state] = of_step;
}

extern "C" __global__ void scale_direction(double* change, double* step, double factor,
                                           long long states)
{
    long long state = own_state();
    if (state >= states) return;
    change[state] *= factor;
    step[state] *= factor;
}

// The combination of iterates that has none of the shares, where it is a number, and not below the
// least iterate.
extern "C" __global__ void combine(
    const Directions* __restrict__ table, int count, const double* __restrict__ shares,
    const double* __restrict__ after, const double* __restrict__ least, double* x,
    long long states)
{
    long long state = own_state();
    if (state >= states) return;
    double combined = after[state];
    for (int place = 0; place < count; place++)
        combined -= shares[place] * table->steps[place][state];
    if (!isfinite(combined)) combined = after[state];
    x[state] = combined < least[state] ? least[state] : combined;
}

// Raises `farthest` to the largest |factor x / r - 1| of states whose r is above `least`.
extern "C" __global__ void find_farthest(
    const double* __restrict__ x, double factor, const double* __restrict__ reference,
    double least, double* farthest, long long states)
{
    long long state = own_state();
    double distance = 0.0;
    if (state < states && reference[state] > least)
        distance = fabs(x[state] * factor / reference[state] - 1.0);
    keep_largest(distance, farthest);
}
