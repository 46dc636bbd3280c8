// Changes of sweeps, their test and their record.
//
// REAL is the type of the vectors, and ROUNDED makes what is stored of a double.

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
