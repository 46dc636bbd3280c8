// What prepares a matrix for any format.

// The state of each row of an MDP.
extern "C" __global__ void name_row_states(
    const OFFSET* __restrict__ group_offsets, const int* __restrict__ states, int groups,
    int* row_states)
{
    int group = blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= groups) return;
    int state = states ? states[group] : group;
    for (OFFSET row = group_offsets[group]; row < group_offsets[group + 1]; row++)
        row_states[row] = state;
}

// Jacobi for x = A x + b: takes the diagonal out and leaves the rows to be divided by 1 - a_ii.
extern "C" __global__ void split_diagonal(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, double* values,
    double* offset, const int* __restrict__ states, OFFSET rows, double* divisors)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    int state = state_of(states, row);
    double own = 0.0, others = 0.0;
    OFFSET end = offsets[row + 1];
    for (OFFSET entry = offsets[row]; entry < end; entry++)
        if (columns[entry] == state) {
            own += values[entry];
            values[entry] = 0.0;
        } else {
            others += values[entry];
        }
    double pivot = pivot_of(own, others);
    divisors[row] = pivot;
    if (offset) offset[row] /= pivot;
}

// Divides each row by its divisor, in place.
extern "C" __global__ void divide_rows(
    const OFFSET* __restrict__ offsets, double* values, OFFSET rows,
    const double* __restrict__ divisors)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    OFFSET end = offsets[row + 1];
    for (OFFSET entry = offsets[row]; entry < end; entry++) values[entry] /= divisors[row];
}

// How far before its row's number a column is at most, and how far behind it.
extern "C" __global__ void measure_reach(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, OFFSET rows, int* reach)
{
    OFFSET row = thread_number();
    // Of columns: of negated distances the maximum comes out too small where the compiler loses a sign
    // (`opaque` of montecarlo.cuh).
    int least = (int)row, greatest = (int)row;
    if (row < rows) {
        OFFSET end = offsets[row + 1];
        for (OFFSET entry = offsets[row]; entry < end; entry++) {
            int column = columns[entry];
            least = min(least, column);
            greatest = max(greatest, column);
        }
    }
    int below = (int)row - least, above = greatest - (int)row;
    for (int other = 16; other > 0; other /= 2) {
        below = max(below, __shfl_down_sync(0xffffffff, below, other));
        above = max(above, __shfl_down_sync(0xffffffff, above, other));
    }
    if (threadIdx.x % 32 != 0) return;
    if (below > *(volatile int*)reach) atomicMax(reach, below);
    if (above > *(volatile int*)(reach + 1)) atomicMax(reach + 1, above);
}
