// Matrices of decision diagrams: expanded from their hybrid representation (formats/jobs.cuh), and
// searched for rows that are the same, without being expanded.
//
// Compiled with OFFSET the type of the row offsets, int or long long.

// How many entries each state's rows have.
extern "C" __global__ void count_entries(JOBS_PARAMETERS, int states, OFFSET* counts)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state >= states) return;
    Jobs all = {JOBS};
    Span span = span_of(all, state);
    OFFSET count = 0;
    for (int job = span.first; job < span.last; job++) {
        Run run = run_of(all, span, job);
        count += run.end - run.begin;
    }
    counts[state] = count;
}

// Calls `take(choice, entries)` for each choice of a state; one without an entry is not a choice.
template <class Take>
__device__ void for_choices(const Jobs& all, const Span& span, Take take)
{
    int choice = -1;
    OFFSET count = 0;
    for (int job = span.first; job < span.last; job++) {
        int of_job = __ldg(all.job_choices + job);
        if (of_job != choice) {
            if (count > 0) take(choice, count);
            choice = of_job;
            count = 0;
        }
        Run run = run_of(all, span, job);
        count += run.end - run.begin;
    }
    if (count > 0) take(choice, count);
}

// How many choices each state has.
extern "C" __global__ void count_choices(JOBS_PARAMETERS, int states, OFFSET* counts)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state >= states) return;
    Jobs all = {JOBS};
    OFFSET count = 0;
    for_choices(all, span_of(all, state), [&](int, OFFSET) { count++; });
    counts[state] = count;
}

// The length of each choice's row, unless `lengths` is null, and the number of the choice.
extern "C" __global__ void measure_choices(
    JOBS_PARAMETERS, int states, const OFFSET* __restrict__ groups, OFFSET* lengths, int* choices)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state >= states) return;
    Jobs all = {JOBS};
    OFFSET row = groups[state];
    for_choices(all, span_of(all, state), [&](int choice, OFFSET count) {
        if (lengths) lengths[row] = count;
        choices[row++] = choice;
    });
}

// Where the entries of states' rows start.
struct Starts {
    const OFFSET* offsets;
    const OFFSET* groups;  // null for a chain

    __device__ OFFSET of(int state) const { return offsets[groups ? groups[state] : state]; }
};

#define FILLED_PARAMETERS \
    JOBS_PARAMETERS, int begin, int end, const OFFSET* __restrict__ offsets, \
    const OFFSET* __restrict__ groups, OFFSET base, int* __restrict__ columns, \
    double* __restrict__ values

// Columns and values of the states from `begin` to `end`, from entry `base` of the matrix on; one
// thread a state, each of which writes where its entries lie.
extern "C" __global__ void fill_rows_by_thread(FILLED_PARAMETERS)
{
    int state = begin + (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (state >= end) return;
    Jobs all = {JOBS};
    OFFSET to = Starts{offsets, groups}.of(state) - base;
    for_entries(all, span_of(all, state), [&](int column, double value) {
        columns[to] = column;
        values[to++] = value;
    });
}

// The same; the entries of a block of states are put together in shared memory first, so that they
// are written by whole lines, unless they are too many.
#define FILL_BLOCK 128
#define STAGED_ENTRIES 2048
extern "C" __global__ void __launch_bounds__(FILL_BLOCK) fill_rows_staged(FILLED_PARAMETERS)
{
    __shared__ double staged_values[STAGED_ENTRIES];
    __shared__ int staged_columns[STAGED_ENTRIES];
    Jobs all = {JOBS};
    Starts starts = {offsets, groups};
    int first = begin + (int)(blockIdx.x * FILL_BLOCK), last = min(first + FILL_BLOCK, end);
    OFFSET from = starts.of(first);
    OFFSET size = starts.of(last) - from;
    bool fits = size <= STAGED_ENTRIES;
    int state = first + (int)threadIdx.x;
    columns += from - base;
    values += from - base;
    if (state < last) {
        OFFSET to = starts.of(state) - from;
        Span span = span_of(all, state);
        if (fits)
            for_entries(all, span, [&](int column, double value) {
                staged_columns[to] = column;
                staged_values[to++] = value;
            });
        else
            for_entries(all, span, [&](int column, double value) {
                columns[to] = column;
                values[to++] = value;
            });
    }
    if (!fits) return;
    __syncthreads();
    for (int entry = threadIdx.x; entry < (int)size; entry += FILL_BLOCK)
        columns[entry] = staged_columns[entry];
    for (int entry = threadIdx.x; entry < (int)size; entry += FILL_BLOCK)
        values[entry] = staged_values[entry];
}

// The same by one warp a state, for rows of a few dozen entries and more: each lane has a job where
// jobs are many, else an entry of the job that all are at.
extern "C" __global__ void fill_rows_by_warp(FILLED_PARAMETERS)
{
    int state = begin + (int)(((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32);
    if (state >= end) return;
    Jobs all = {JOBS};
    int lane = threadIdx.x % 32;
    Span span = span_of(all, state);
    OFFSET to = Starts{offsets, groups}.of(state) - base;
    if (span.last - span.first < 32) {
        for (int job = span.first; job < span.last; job++) {
            Run run = run_of(all, span, job);
            for (int entry = run.begin + lane; entry < run.end; entry += 32) {
                double2 local = __ldg(all.local_entries + entry);
                columns[to + (entry - run.begin)] =
                    run.column + (int)__double_as_longlong(local.y);
                values[to + (entry - run.begin)] = local.x;
            }
            to += run.end - run.begin;
        }
        return;
    }
    for (int job = span.first; job < span.last; job += 32) {
        Run run = {0, 0, 0};
        if (job + lane < span.last) run = run_of(all, span, job + lane);
        int until = run.end - run.begin;
        for (int reach = 1; reach < 32; reach *= 2) {
            int other = __shfl_up_sync(0xffffffff, until, reach);
            if (lane >= reach) until += other;
        }
        OFFSET at = to + until - (run.end - run.begin);
        for (int entry = run.begin; entry < run.end; entry++, at++) {
            double2 local = __ldg(all.local_entries + entry);
            columns[at] = run.column + (int)__double_as_longlong(local.y);
            values[at] = local.x;
        }
        to += __shfl_sync(0xffffffff, until, 31);
    }
}

// The strip of every GUIDED-th state, and at the end the last strip.
extern "C" __global__ void guide_strips(
    const int* __restrict__ strip_states, int strips, int count, int* guides)
{
    int guide = blockIdx.x * blockDim.x + threadIdx.x;
    if (guide >= count) return;
    int low = 0, high = strips - 1;
    while (guide < count - 1 && low < high) {
        int middle = high - (high - low) / 2;
        if (strip_states[middle] <= guide * GUIDED) low = middle;
        else high = middle - 1;
    }
    guides[guide] = high;
}

// Exit rates without self-loops, 1 where there are none.
extern "C" __global__ void find_exit_rates(JOBS_PARAMETERS, int states, double* exits)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state >= states) return;
    Jobs all = {JOBS};
    double sum = 0.0;
    for_entries(all, span_of(all, state), [&](int column, double value) {
        if (column != state) sum += value;
    });
    exits[state] = sum == 0.0 ? 1.0 : sum;
}

// Jacobi for x = A x + b: 1 - a_ii of each row; the right-hand side is divided by it.
extern "C" __global__ void find_pivots(
    JOBS_PARAMETERS, const int* __restrict__ row_states, int rows, double* offset,
    double* divisors)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    Jobs all = {JOBS};
    int state = row_states ? row_states[row] : row;
    double own = 0.0, others = 0.0;
    for_entries(all, span_of(all, state), [&](int column, double value) {
        if (column == state) own += value; else others += value;
    });
    double pivot = pivot_of(own, others);
    divisors[row] = pivot;
    if (offset) offset[row] /= pivot;
}

// The rows of a system whose matrix is not expanded.
#define ROWS_PARAMETERS \
    JOBS_PARAMETERS, const double* __restrict__ divisors, const double* __restrict__ offset, \
    const int* __restrict__ row_states, const int* __restrict__ row_choices, \
    int without_diagonal
#define ROWS {JOBS}, divisors, offset, row_states, row_choices, without_diagonal != 0

struct Rows {
    Jobs jobs;
    const double* divisors;
    const double* offset;
    const int* row_states;
    const int* row_choices;  // null for a chain
    bool without_diagonal;
};

__device__ int state_of_row(const Rows& rows, int row)
{
    return rows.row_states ? rows.row_states[row] : row;
}

// Calls `take(distance, value)` for each entry of a row of the iteration matrix.
template <class Take>
__device__ void for_pairs(const Rows& rows, int row, Take take)
{
    int state = state_of_row(rows, row);
    Span span = span_of(rows.jobs, state);
    if (rows.row_choices) {
        int choice = rows.row_choices[row];
        while (__ldg(rows.jobs.job_choices + span.first) != choice) span.first++;
        int last = span.first;
        while (last < span.last && __ldg(rows.jobs.job_choices + last) == choice) last++;
        span.last = last;
    }
    double divisor = rows.divisors ? rows.divisors[row] : 1.0;
    for_entries(rows.jobs, span, [&](int column, double value) {
        if (rows.without_diagonal && column == state) return;
        take(column - state, rows.divisors ? value / divisor : value);
    });
}

// A row's hash, never EMPTY. `seed` gives other hashes where two different rows have had one.
__device__ Key hash_of_row(const Rows& rows, int row, Key seed, Key hash_bits)
{
    Key hash = seed ^ (rows.offset ? bits_of(rows.offset[row]) : 0);
    for_pairs(rows, row, [&](int distance, double value) {
        hash = (hash ^ (unsigned)distance) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 29;
        hash = (hash ^ bits_of(value)) * 0xbf58476d1ce4e5b9ULL;
        hash ^= hash >> 32;
    });
    return hash & hash_bits;
}

// The hashes of all rows, and the smallest row of each.
extern "C" __global__ void gather_unexpanded_rows(
    ROWS_PARAMETERS, int count_of_rows, Key seed, Key hash_bits, Key* keys, unsigned mask,
    unsigned hash_mask, int* count, int limit, Key* firsts)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count_of_rows) return;
    Rows rows = {ROWS};
    Key hash = hash_of_row(rows, row, seed, hash_bits);
    int slot = inserted(Table{keys, mask, hash_mask}, hash, count, limit);
    if (slot < 0) return;
    if ((Key)row < *(volatile Key*)&firsts[slot]) atomicMin(&firsts[slot], (Key)row);
}

// How many pairs each of the chosen rows has.
extern "C" __global__ void measure_unexpanded_rows(
    ROWS_PARAMETERS, const Key* __restrict__ chosen, int patterns, OFFSET* lengths)
{
    int pattern = blockIdx.x * blockDim.x + threadIdx.x;
    if (pattern >= patterns) return;
    OFFSET length = 0;
    for_pairs(Rows{ROWS}, (int)chosen[pattern], [&](int, double) { length++; });
    lengths[pattern] = length;
}

// The pairs of the chosen rows, and their right-hand sides.
extern "C" __global__ void copy_unexpanded_rows(
    ROWS_PARAMETERS, const Key* __restrict__ chosen, int patterns,
    const OFFSET* __restrict__ starts, double2* pairs, double* givens)
{
    int pattern = blockIdx.x * blockDim.x + threadIdx.x;
    if (pattern >= patterns) return;
    int row = (int)chosen[pattern];
    OFFSET to = starts[pattern];
    for_pairs(Rows{ROWS}, row, [&](int distance, double value) {
        pairs[to++] = double2{value, __longlong_as_double((long long)distance)};
    });
    if (givens) givens[pattern] = offset[row];
}

// The code of each row. Rows that have a pattern's hash but not its pairs are counted.
extern "C" __global__ void encode_unexpanded_rows(
    ROWS_PARAMETERS, int count_of_rows, Key seed, Key hash_bits, Key* keys, unsigned mask,
    unsigned hash_mask, const int* __restrict__ codes, const OFFSET* __restrict__ starts,
    const double2* __restrict__ pairs, const double* __restrict__ givens, void* encoded, int width,
    int* num_different)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count_of_rows) return;
    Rows rows = {ROWS};
    Key hash = hash_of_row(rows, row, seed, hash_bits);
    int code = codes[slot_of(Table{keys, mask, hash_mask}, hash)];
    OFFSET at = starts[code], end = starts[code + 1];
    bool same = !givens || bits_of(givens[code]) == bits_of(rows.offset[row]);
    for_pairs(rows, row, [&](int distance, double value) {
        if (at < end) {
            double2 pair = pairs[at];
            same = same && bits_of(pair.x) == bits_of(value)
                && __double_as_longlong(pair.y) == (long long)distance;
        }
        at++;
    });
    if (!same || at != end) atomicAdd(num_different, 1);
    put_code(encoded, width, row, code);
}

// A walk through the graph, breadth first. `marks` are where the present round's states begin and end
// in the queue, and how many states are in it.
extern "C" __global__ void begin_walk(int state, unsigned* reached, int* queue, int* marks)
{
    reached[state / 32] |= 1u << state % 32;
    queue[0] = state;
    marks[0] = 0;
    marks[1] = marks[2] = 1;
}

// Puts into the queue what the states of a round lead to and no state before them has. Any number of
// threads shares them.
extern "C" __global__ void walk_on(JOBS_PARAMETERS, unsigned* reached, int* queue, int* marks)
{
    Jobs all = {JOBS};
    int end = marks[1];
    for (int at = marks[0] + (int)(blockIdx.x * blockDim.x + threadIdx.x); at < end;
         at += (int)(gridDim.x * blockDim.x))
        for_entries(all, span_of(all, queue[at]), [&](int column, double) {
            unsigned bit = 1u << column % 32;
            unsigned* word = reached + column / 32;
            // Reading first spares nearly every atomic operation.
            if (*(volatile unsigned*)word & bit || atomicOr(word, bit) & bit) return;
            queue[atomicAdd(marks + 2, 1)] = column;
        });
}

// What was put into the queue is the next round.
extern "C" __global__ void end_round(int* marks)
{
    marks[0] = marks[1];
    marks[1] = marks[2];
}
