// Strong components by forward and backward searches with trimming, region by region, as the paper of
// 2014 has them: what our own decomposition is measured against.
//
// Compiled with OFFSET the type of the row offsets. Rows of the first 32 * segments states are
// interleaved: entry k of state s is columns[(s / 32 * interval + k) * 32 + s % 32], -1 for none. The
// rows of the others follow, at their offsets. A state is new to a search (0), in its frontier (1) or
// explored (2); several threads may store the same.

#define CACHED 1024

struct Row {
    OFFSET at, end;
    int step;
};

__device__ Row row_of(const OFFSET* offsets, int segments, int interval, int state)
{
    if (state < 32 * segments) {
        OFFSET at = (OFFSET)(state / 32) * 32 * interval + state % 32;
        return Row{at, at + (OFFSET)32 * interval, 32};
    }
    state -= 32 * segments;
    return Row{offsets[state], offsets[state + 1], 1};
}

// Puts the new successors of a state into the frontier, and in the cache where there is room; what
// stays outside of it wants another look at all states.
__device__ void explore(const OFFSET* offsets, const int* columns, int segments, int interval, int state,
                        const int* region, const int* done, volatile int* mark, int* cache, int* more)
{
    Row row = row_of(offsets, segments, interval, state);
    int own = region[state];
    for (OFFSET entry = row.at; entry < row.end; entry += row.step) {
        int target = columns[entry];
        if (target < 0 || done[target] || region[target] != own || mark[target] != 0) continue;
        mark[target] = 1;
        if (!cache || atomicCAS(&cache[target % CACHED], -1, target) != -1) *more = 1;
    }
}

__device__ void clear_cache(int* cache)
{
    for (int k = threadIdx.x; k < CACHED; k += blockDim.x) cache[k] = -1;
    __syncthreads();
}

// Explores what a block has put into its cache, as often as there are iterations left.
__device__ void explore_cached(const OFFSET* offsets, const int* columns, int segments, int interval,
                               const int* region, const int* done, volatile int* mark, int* cache,
                               int iterations, int* more)
{
    for (int iteration = 1; iteration < iterations; iteration++) {
        __syncthreads();
        int* next = iteration + 1 < iterations ? cache : nullptr;
        for (int k = threadIdx.x; k < CACHED; k += blockDim.x) {
            int state = atomicExch(&cache[k], -1);
            if (state < 0 || mark[state] != 1) continue;
            mark[state] = 2;
            explore(offsets, columns, segments, interval, state, region, done, mark, next, more);
        }
    }
}

// One search: a look at all states for its frontier, and further iterations in the cache.
extern "C" __global__ void search(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, int segments, int interval,
    int states, const int* __restrict__ region, const int* __restrict__ done, int* mark, int iterations,
    int* more)
{
    __shared__ int cache[CACHED];
    if (iterations > 1) clear_cache(cache);
    int* kept = iterations > 1 ? cache : nullptr;
    for (int state = blockIdx.x * blockDim.x + threadIdx.x; state < states; state += gridDim.x * blockDim.x)
        if (mark[state] == 1) {
            mark[state] = 2;
            explore(offsets, columns, segments, interval, state, region, done, mark, kept, more);
        }
    explore_cached(offsets, columns, segments, interval, region, done, mark, cache, iterations, more);
}

// Both searches in one look at all states; `into_*` is the transposed graph.
extern "C" __global__ void search_both(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, int segments, int interval,
    const OFFSET* __restrict__ into_offsets, const int* __restrict__ into_columns, int states,
    const int* __restrict__ region, const int* __restrict__ done, int* ahead, int* behind, int iterations,
    int* more)
{
    __shared__ int cache[CACHED];
    __shared__ int into_cache[CACHED];
    bool cached = iterations > 1;
    if (cached) {
        clear_cache(cache);
        clear_cache(into_cache);
    }
    int *kept = cached ? cache : nullptr, *into_kept = cached ? into_cache : nullptr;
    for (int state = blockIdx.x * blockDim.x + threadIdx.x; state < states; state += gridDim.x * blockDim.x) {
        if (ahead[state] == 1) {
            ahead[state] = 2;
            explore(offsets, columns, segments, interval, state, region, done, ahead, kept, more);
        }
        if (behind[state] == 1) {
            behind[state] = 2;
            explore(into_offsets, into_columns, 0, 1, state, region, done, behind, into_kept, more + 1);
        }
    }
    explore_cached(offsets, columns, segments, interval, region, done, ahead, cache, iterations, more);
    explore_cached(into_offsets, into_columns, 0, 1, region, done, behind, into_cache, iterations, more + 1);
}

// The backward search without a transposed graph: each new state looks whether it leads to one that
// has been reached.
extern "C" __global__ void search_behind(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, int segments, int interval,
    int states, const int* __restrict__ region, const int* __restrict__ done, int* behind, int* more)
{
    volatile int* mark = behind;
    for (int state = blockIdx.x * blockDim.x + threadIdx.x; state < states; state += gridDim.x * blockDim.x) {
        if (done[state] || mark[state] != 0) continue;
        Row row = row_of(offsets, segments, interval, state);
        for (OFFSET entry = row.at; entry < row.end; entry += row.step) {
            int target = columns[entry];
            if (target < 0 || done[target] || region[target] != region[state] || mark[target] == 0) continue;
            mark[state] = 2;
            *more = 1;
            break;
        }
    }
}

// Marks who has a successor and who a predecessor in its region, other than itself.
extern "C" __global__ void mark_neighbours(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, int segments, int interval,
    int states, const int* __restrict__ region, const int* __restrict__ done, int* has_in, int* has_out)
{
    for (int state = blockIdx.x * blockDim.x + threadIdx.x; state < states; state += gridDim.x * blockDim.x) {
        if (done[state]) continue;
        Row row = row_of(offsets, segments, interval, state);
        for (OFFSET entry = row.at; entry < row.end; entry += row.step) {
            int target = columns[entry];
            if (target < 0 || target == state || done[target] || region[target] != region[state]) continue;
            has_out[state] = 1;
            has_in[target] = 1;
        }
    }
}

// Makes those that lack either a component each, and clears the marks.
extern "C" __global__ void trim_states(
    int states, int* region, int* done, int* has_in, int* has_out, int* changed)
{
    for (int state = blockIdx.x * blockDim.x + threadIdx.x; state < states; state += gridDim.x * blockDim.x) {
        if (!done[state] && !(has_in[state] && has_out[state])) {
            done[state] = 1;
            region[state] = state;
            *changed = 1;
        }
        has_in[state] = has_out[state] = 0;
    }
}

// Chooses a pivot for each region: who comes first.
extern "C" __global__ void claim_pivots(
    int states, const int* __restrict__ region, const int* __restrict__ done, int* claims)
{
    for (int state = blockIdx.x * blockDim.x + threadIdx.x; state < states; state += gridDim.x * blockDim.x)
        if (!done[state]) atomicCAS(&claims[region[state]], -1, state);
}

// Begins both searches at the pivots; `left` is set where any state is.
extern "C" __global__ void begin_searches(
    int states, const int* __restrict__ region, const int* __restrict__ done,
    const int* __restrict__ claims, int* ahead, int* behind, int* left)
{
    for (int state = blockIdx.x * blockDim.x + threadIdx.x; state < states; state += gridDim.x * blockDim.x) {
        bool pivot = !done[state] && claims[region[state]] == state;
        ahead[state] = behind[state] = pivot;
        if (pivot) *left = 1;
    }
}

__device__ long long part_of(const int* region, const int* ahead, const int* behind, int state)
{
    return 3 * (long long)region[state] + (ahead[state] ? 1 : behind[state] ? 2 : 0);
}

// Names the three parts of each region outside of its component: each by one of its states.
extern "C" __global__ void claim_parts(
    int states, const int* __restrict__ region, const int* __restrict__ done,
    const int* __restrict__ ahead, const int* __restrict__ behind, int* parts)
{
    for (int state = blockIdx.x * blockDim.x + threadIdx.x; state < states; state += gridDim.x * blockDim.x)
        if (!done[state] && !(ahead[state] && behind[state]))
            atomicCAS(&parts[part_of(region, ahead, behind, state)], -1, state);
}

// Ends a round: who was reached by both searches is in the component of its region's pivot.
extern "C" __global__ void divide_regions(
    int states, int* region, int* done, const int* __restrict__ ahead, const int* __restrict__ behind,
    const int* __restrict__ claims, const int* __restrict__ parts)
{
    for (int state = blockIdx.x * blockDim.x + threadIdx.x; state < states; state += gridDim.x * blockDim.x) {
        if (done[state]) continue;
        bool both = ahead[state] && behind[state];
        region[state] = both ? claims[region[state]] : parts[part_of(region, ahead, behind, state)];
        done[state] = both;
    }
}
