// The slots of sweeps in colours, which are one launch each.
//
// All colours of a sweep raise one slot to its largest change, and look at the slot of the sweep
// before. If that met the test, they pass its change on and leave the vectors alone: the iterate
// stays that of the first sweep that met the test, however many are queued behind it.

__device__ void raise_sweep_slot(double change, double* slot)
{
    // Changes are not negative, so their bit patterns are ordered as they are. Reading first spares
    // nearly every atomic operation.
    if (change > *(volatile double*)slot)
        atomicMax((unsigned long long*)slot, (unsigned long long)__double_as_longlong(change));
}

// Raises the slot to the largest change of a block; all its threads take part.
__device__ void record_colour(double change, double* slot)
{
    for (int lane = 16; lane > 0; lane /= 2) {
        double other = __shfl_down_sync(0xffffffff, change, lane);
        if (other > change) change = other;
    }
    __shared__ double of_warp[32];
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = change;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < (blockDim.x + 31) / 32; warp++)
        if (of_warp[warp] > change) change = of_warp[warp];
    raise_sweep_slot(change, slot);
}

// Every colour of a sweep that comes too late writes the same number.
__device__ void pass_change_on(double change, double* slot)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) *slot = change;
}

// Stores a state's new value and returns its change.
__device__ double store_fresh(double* x_new, int state, double before, double after, int absolute)
{
    x_new[state] = after;
    // PRISM's measure: 0/0 and inf - inf are NaN, which no comparison lets through.
    double change = fabs(after - before);
    if (!absolute) change /= fabs(before);
    return change > 0.0 ? change : 0.0;
}
