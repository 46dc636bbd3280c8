// From a matrix to the iteration matrix, on the device.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.

// Jacobi for x = A x + b, in place: row i without its diagonal, over 1 - a_ii.
extern "C" __global__ void divide_by_diagonal(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, double* values,
    double* offset, const int* __restrict__ states, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int state = states ? states[row] : row;
    OFFSET begin = offsets[row], end = offsets[row + 1];
    double own = 0.0, others = 0.0;
    for (OFFSET entry = begin; entry < end; entry++)
        if (columns[entry] == state) {
            own += values[entry];
            values[entry] = 0.0;
        } else {
            others += values[entry];
        }
    double pivot = pivot_of(own, others);
    if (pivot == 1.0) return;
    for (OFFSET entry = begin; entry < end; entry++) values[entry] /= pivot;
    if (offset) offset[row] /= pivot;
}

// Exit rates without self-loops (1 where there are none), and how many entries each column has.
extern "C" __global__ void measure_balance(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, int rows, double* exits, OFFSET* column_counts)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    OFFSET end = offsets[row + 1];
    double sum = 0.0;
    for (OFFSET entry = offsets[row]; entry < end; entry++) {
        int column = columns[entry];
        if (column == row) continue;
        sum += values[entry];
        atomicAdd((UNSIGNED_OFFSET*)&column_counts[column], (UNSIGNED_OFFSET)1);
    }
    exits[row] = sum == 0.0 ? 1.0 : sum;
}

// Keeps the largest of some counts.
extern "C" __global__ void keep_longest(
    const OFFSET* __restrict__ counts, int length, OFFSET* longest)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < length && counts[index] > *(volatile OFFSET*)longest)
        atomicMax(longest, counts[index]);
}

// Inclusive sums within each block of `counts`, and each block's total.
extern "C" __global__ void scan_blocks(OFFSET* counts, int length, OFFSET* totals)
{
    __shared__ OFFSET shared[1024];
    int index = blockIdx.x * 1024 + threadIdx.x;
    shared[threadIdx.x] = index < length ? counts[index] : 0;
    __syncthreads();
    for (int reach = 1; reach < 1024; reach *= 2) {
        OFFSET before = threadIdx.x >= reach ? shared[threadIdx.x - reach] : 0;
        __syncthreads();
        shared[threadIdx.x] += before;
        __syncthreads();
    }
    if (index < length) counts[index] = shared[threadIdx.x];
    if (threadIdx.x == 1023 && totals) totals[blockIdx.x] = shared[1023];
}

// Adds to each block of `counts` the inclusive sum of the blocks before it.
extern "C" __global__ void add_block_totals(OFFSET* counts, int length, const OFFSET* totals)
{
    int index = blockIdx.x * 1024 + threadIdx.x;
    if (blockIdx.x > 0 && index < length) counts[index] += totals[blockIdx.x - 1];
}

// Jacobi for pi Q = 0: entry r_ij becomes a_ji = r_ij / exit_j, or stays what it is without exits.
// Filled from each row's end.
extern "C" __global__ void scatter_balance(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, int rows, const double* __restrict__ exits,
    OFFSET* cursors, int* turned_columns, double* turned_values)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    OFFSET end = offsets[row + 1];
    for (OFFSET entry = offsets[row]; entry < end; entry++) {
        int column = columns[entry];
        if (column == row) continue;
        OFFSET place = atomicAdd((UNSIGNED_OFFSET*)&cursors[column], (UNSIGNED_OFFSET)-1) - 1;
        turned_columns[place] = row;
        turned_values[place] = exits ? values[entry] / exits[column] : values[entry];
    }
}

// Puts each row's entries in ascending order of columns, so that sums do not depend on races.
extern "C" __global__ void sort_rows(
    const OFFSET* __restrict__ offsets, int rows, int* columns, double* values)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    OFFSET begin = offsets[row], end = offsets[row + 1];
    for (OFFSET entry = begin + 1; entry < end; entry++) {
        int column = columns[entry];
        double value = values[entry];
        OFFSET place = entry;
        for (; place > begin && columns[place - 1] > column; place--) {
            columns[place] = columns[place - 1];
            values[place] = values[place - 1];
        }
        columns[place] = column;
        values[place] = value;
    }
}

// Values times a power of two in single precision, rounded to nearest or down.
extern "C" __global__ void copy_narrowed(
    const double* __restrict__ values, OFFSET count, double factor, int nearest, float* narrowed)
{
    OFFSET i = (OFFSET)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double value = factor * values[i];
    narrowed[i] = nearest ? __double2float_rn(value) : __double2float_rd(value);
}

// Takes over the means of two iterates for the states that are computed, divided by a power of two;
// others keep what they are.
extern "C" __global__ void copy_widened(
    const float* __restrict__ first, const float* __restrict__ second,
    const int* __restrict__ states, int count, double factor, double* values)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int state = states ? states[i] : i;
    values[state] = ((double)first[state] + (double)second[state]) / (2.0 * factor);
}
