// Components and the numbers of states.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.
//
// Between the states below a number and the others lies a gap. A component with states on both
// sides has an edge up and an edge down across the gap. So a state is a component of its own if
// across the gap below it, and across the one above it, there are no edges up, or none down. Such
// gaps part the states: no component has members in two parts.

#define STATES_A_THREAD 8
#define SPAN (256 * STATES_A_THREAD)
#define NOWHERE 0x7fffffff
#define FURTHEST_THREADS 1024

// The least and the greatest state that edges lead to.
struct Reach {
    int least, greatest;

    __device__ Reach with(Reach other) const
    {
        return {min(least, other.least), max(greatest, other.greatest)};
    }
};

__device__ Reach nowhere() { return {NOWHERE, -1}; }

struct ReachOfEdges {
    const int* columns;
    const unsigned *cut, *open;
    Reach* reached;  // of the block's states
    int first;
    Reach own;

    __device__ void begin(int) { own = nowhere(); }
    __device__ void visit(int state, OFFSET edge)
    {
        int after = columns[edge];
        if (after != state && !is_cut(cut, edge) && has(open, after)) own = own.with({after, after});
    }
    __device__ void end(int state)
    {
        Reach* of_state = &reached[state - first];
        if (own.least < NOWHERE) atomicMin(&of_state->least, own.least);
        if (own.greatest >= 0) atomicMax(&of_state->greatest, own.greatest);
    }
};

// The reach of each open state, and that of each block's states together. A block of 256 threads
// for each SPAN states.
extern "C" __global__ void find_reach(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, const unsigned* cut, const unsigned* open, int states,
    Reach* reach, Reach* of_blocks)
{
    __shared__ Reach reached[SPAN];
    int first = blockIdx.x * SPAN;
    for (int i = threadIdx.x; i < SPAN; i += 256) reached[i] = nowhere();
    __syncthreads();
    ReachOfEdges walk{columns, cut, open, reached, first};
    for (int i = threadIdx.x; i < SPAN; i += 256) {
        bool here = i < states - first && has(open, first + i);
        walk_edges(Edges{offsets, groups}, here ? first + i : -1, walk);
    }
    __syncthreads();
    Reach all = nowhere();
    for (int i = threadIdx.x; i < SPAN; i += 256) {
        if (i < states - first) reach[first + i] = reached[i];
        all = all.with(reached[i]);
    }
    for (int far = 16; far; far /= 2)
        all = all.with({__shfl_xor_sync(ALL_LANES, all.least, far),
                        __shfl_xor_sync(ALL_LANES, all.greatest, far)});
    __syncthreads();
    if (threadIdx.x % 32 == 0) reached[threadIdx.x / 32] = all;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < 8; warp++) all = all.with(reached[warp]);
    of_blocks[blockIdx.x] = all;
}

// What a part's neighbours reach across it: the least state of the parts after it, the greatest of
// those before. Every thread of a block gives the reach of its part, in order.
__device__ Reach across(Reach own, Reach* shared)
{
    int thread = threadIdx.x, threads = blockDim.x;
    shared[thread] = own;
    __syncthreads();
    for (int far = 1; far < threads; far *= 2) {
        Reach sum = shared[thread];
        if (thread + far < threads) sum.least = min(sum.least, shared[thread + far].least);
        if (thread >= far) sum.greatest = max(sum.greatest, shared[thread - far].greatest);
        __syncthreads();
        shared[thread] = sum;
        __syncthreads();
    }
    return {thread + 1 < threads ? shared[thread + 1].least : NOWHERE,
            thread > 0 ? shared[thread - 1].greatest : -1};
}

// Replaces each block's reach by what the others reach across it. One block of FURTHEST_THREADS.
extern "C" __global__ void __launch_bounds__(FURTHEST_THREADS) reach_across(
    Reach* of_blocks, int blocks)
{
    __shared__ Reach shared[FURTHEST_THREADS];
    int share = (blocks + FURTHEST_THREADS - 1) / FURTHEST_THREADS;
    int first = min((int)threadIdx.x * share, blocks), end = min(first + share, blocks);
    Reach own = nowhere();
    for (int i = first; i < end; i++) own = own.with(of_blocks[i]);
    Reach others = across(own, shared);
    // Upwards for the greatest, downwards for the least.
    int greatest = others.greatest, least = others.least;
    for (int i = first; i < end; i++) {
        int next = max(greatest, of_blocks[i].greatest);
        of_blocks[i].greatest = greatest;
        greatest = next;
    }
    for (int i = end - 1; i >= first; i--) {
        int next = min(least, of_blocks[i].least);
        of_blocks[i].least = least;
        least = next;
    }
}

// What is counted: open states that remain, and those of them that a part begins with.
enum { LEFT, FIRST_OF_PART };

// Names the open states that are components of their own by their numbers, and counts the others in
// `counts`. Leaves which gaps part the states of each thread in its first state's reach, and how many
// do of each block's. A block of 256 threads for each SPAN states; `open` by its bytes.
extern "C" __global__ void name_apart(
    Reach* reach, const Reach* __restrict__ of_blocks, int states, unsigned char* open,
    int* leader, int* gaps_of_blocks, unsigned long long* counts)
{
    __shared__ Reach shared[256];
    __shared__ int total[2], gaps_of_block;
    if (threadIdx.x < 2) total[threadIdx.x] = 0;
    if (threadIdx.x == 0) gaps_of_block = 0;
    long long begin = (blockIdx.x * 256LL + threadIdx.x) * STATES_A_THREAD;
    int first = (int)min(begin, (long long)states), count = min(STATES_A_THREAD, states - first);
    Reach states_of[STATES_A_THREAD], own = nowhere();
#pragma unroll
    for (int i = 0; i < STATES_A_THREAD; i++) {
        states_of[i] = i < count ? reach[first + i] : nowhere();
        own = own.with(states_of[i]);
    }
    Reach others = across(own, shared).with(of_blocks[blockIdx.x]);
    // Bit i: no edge leads up, or none down, across the gap below the thread's state i.
    unsigned gaps = 0;
    int greatest = others.greatest, least = others.least;
#pragma unroll
    for (int i = 0; i <= STATES_A_THREAD; i++) {
        if (greatest < first + i) gaps |= 1u << i;
        if (i < STATES_A_THREAD) greatest = max(greatest, states_of[i].greatest);
    }
#pragma unroll
    for (int i = STATES_A_THREAD; i >= 0; i--) {
        if (i < STATES_A_THREAD) least = min(least, states_of[i].least);
        if (least >= first + i) gaps |= 1u << i;
    }
    if (count > 0) {
        unsigned members = open[first / 8], apart = members & gaps & gaps >> 1;
        for (unsigned named = apart; named; named &= named - 1) {
            int state = first + __ffs(named) - 1;
            leader[state] = state;
        }
        members &= ~apart;
        if (apart) open[first / 8] = members;
        if (members) atomicAdd(&total[LEFT], __popc(members));
        if (members & gaps) atomicAdd(&total[FIRST_OF_PART], __popc(members & gaps));
        gaps &= (1u << count) - 1;
        if (gaps) atomicAdd(&gaps_of_block, __popc(gaps));
        reach[first].least = gaps;
    }
    __syncthreads();
    if (threadIdx.x < 2 && total[threadIdx.x])
        atomicAdd(&counts[threadIdx.x], (unsigned long long)total[threadIdx.x]);
    if (threadIdx.x == 0) gaps_of_blocks[blockIdx.x] = gaps_of_block;
}

// Makes each part a region, or each part of a region, where open states have one: `gaps` counts the
// gaps until the end of each block. That two regions may be called the same only costs time. A block
// of 256 threads for each SPAN states; `open` by its bytes.
extern "C" __global__ void name_parts(
    const Reach* __restrict__ reach, const int* __restrict__ gaps, int states,
    const unsigned char* __restrict__ open, int by_regions, int* leader)
{
    __shared__ int shared[256];
    long long begin = (blockIdx.x * 256LL + threadIdx.x) * STATES_A_THREAD;
    int first = (int)min(begin, (long long)states), count = min(STATES_A_THREAD, states - first);
    unsigned own = count > 0 ? reach[first].least : 0, members = count > 0 ? open[first / 8] : 0;
    shared[threadIdx.x] = __popc(own);
    for (int far = 1; far < 256; far *= 2) {
        __syncthreads();
        int before = threadIdx.x >= far ? shared[threadIdx.x - far] : 0;
        __syncthreads();
        shared[threadIdx.x] += before;
    }
    unsigned part = shared[threadIdx.x] - __popc(own);
    if (blockIdx.x > 0) part += gaps[blockIdx.x - 1];
    for (int i = 0; i < count; i++) {
        part += own >> i & 1;
        if (!(members >> i & 1)) continue;
        // An odd factor keeps regions apart.
        unsigned region = by_regions ? leader[first + i] * 0x9e3779b1u : 0;
        leader[first + i] = region + part;
    }
}
