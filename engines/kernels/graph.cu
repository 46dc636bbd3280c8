// Closures of sets of states in a model's graph.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.
//
// Sets are bitmaps, 32 members a word. A closure is a worklist: each state that joins the set is
// expanded once, by a walk over its edges. An item of the list is a range of at most LONGEST edges
// of a state, so that a state which a million others enter is work for many blocks. Sets only grow,
// and a member joins by an atomic operation that one thread wins: the order does not matter, and
// the result does not depend on it. So a block need not wait for the others: what it finds it
// keeps, in shared memory, and goes on from there for up to LEVELS steps, as long as it is little.

typedef unsigned long long Counter;
typedef unsigned long long Item;  // first edge · 2^13 + number of edges

#define LENGTH_BITS 13
#define LONGEST 4096
#define HELD 1024
#define LEVELS 32
#define LONG_FOR_A_THREAD 32
#define ALL_LANES 0xffffffffu

// What is common to all rounds: the round's part of the list, the list's end, the blocks that have
// finished the round, and the items expanded so far.
enum { BEGIN, END, TAIL, FINISHED, EXPANDED };

// The edges of a state: those of its row, or of its group of rows.
struct Edges {
    const OFFSET* offsets;
    const int* groups;  // null where state s has row s

    __device__ OFFSET begin(int state) const { return offsets[groups ? groups[state] : state]; }
    __device__ OFFSET end(int state) const
    {
        return offsets[groups ? groups[state + 1] : state + 1];
    }
};

__device__ Item item(OFFSET first, OFFSET edges)
{
    return (Item)first << LENGTH_BITS | (Item)(edges < LONGEST ? edges : LONGEST);
}

__device__ int items_of(OFFSET edges) { return (int)((edges + LONGEST - 1) / LONGEST); }

__device__ bool has(const unsigned* set, int member)
{
    // Other threads change the set: what an old copy says would only cost time, but for longer.
    return *(const volatile unsigned*)&set[member / 32] >> member % 32 & 1;
}

// Takes a member out of a set; returns whether it was this thread that did.
__device__ bool take(unsigned* set, int member)
{
    unsigned bit = 1u << member % 32;
    return atomicAnd(&set[member / 32], ~bit) & bit;
}

// Puts a member into a set; returns whether it was this thread that did.
__device__ bool put(unsigned* set, int member)
{
    unsigned bit = 1u << member % 32;
    return !(atomicOr(&set[member / 32], bit) & bit);
}

// Appends a state's edges to the list.
__device__ void append(const Edges& edges, int state, Item* list, Counter place)
{
    OFFSET end = edges.end(state);
    for (OFFSET first = edges.begin(state); first < end; first += LONGEST)
        list[place++] = item(first, end - first);
}

// Ends a block's part of a round; the last block to do so makes what was appended the next round.
// Every thread of the block takes part.
__device__ void finish(Counter* progress, Counter expanded)
{
    __syncthreads();
    if (threadIdx.x > 0) return;
    if (expanded) atomicAdd(&progress[EXPANDED], expanded);
    __threadfence();
    if (atomicAdd(&progress[FINISHED], (Counter)1) + 1 < gridDim.x) return;
    progress[BEGIN] = progress[END];
    progress[END] = atomicAdd(&progress[TAIL], (Counter)0);
    progress[FINISHED] = 0;
}

// Calls `visit` for each edge of an item: a thread its own, a warp together the long ones. Every
// thread of the warp takes part, an item of 0 is none.
template <class Visit>
__device__ void walk(Item own, Visit visit)
{
    OFFSET edge = (OFFSET)(own >> LENGTH_BITS);
    OFFSET end = edge + (OFFSET)(own & ((1 << LENGTH_BITS) - 1));
    unsigned left = __ballot_sync(ALL_LANES, end - edge >= LONG_FOR_A_THREAD);
    for (; left; left &= left - 1) {
        int owner = __ffs(left) - 1;
        OFFSET from = __shfl_sync(ALL_LANES, edge, owner);
        OFFSET to = __shfl_sync(ALL_LANES, end, owner);
        for (OFFSET shared = from + threadIdx.x % 32; shared < to; shared += 32) visit(shared);
        if (threadIdx.x % 32 == owner) edge = end;
    }
    for (; edge < end; edge++) visit(edge);
}

// One round: expands the round's part of the list. `found` maps an edge to the state that joins
// the set because of it, or -1.
template <class Found>
__device__ void expand(const Edges& edges, Item* list, Counter* progress, Found found)
{
    __shared__ Item held[2][HELD];
    __shared__ int counts[2];
    __shared__ Counter flushed;
    Counter begin = progress[BEGIN], end = progress[END];
    if (begin == end) return;
    // Few items are spread over all blocks, each of which takes its own the further.
    Counter share = (end - begin + gridDim.x - 1) / gridDim.x;
    if (share > blockDim.x) share = blockDim.x;
    Counter expanded = 0;
    for (begin += blockIdx.x * share; begin < end; begin += gridDim.x * share) {
        int count = (int)(end - begin < share ? end - begin : share);
        Item own = threadIdx.x < count ? list[begin + threadIdx.x] : 0;
        for (int level = 0;; level++) {
            int next = level % 2;
            if (threadIdx.x == 0) counts[next] = 0;
            __syncthreads();
            walk(own, [&](OFFSET edge) {
                int state = found(edge);
                if (state < 0) return;
                OFFSET first = edges.begin(state), behind = edges.end(state);
                if (first == behind) return;
                if (behind - first <= LONGEST) {
                    int place = atomicAdd(&counts[next], 1);
                    if (place < HELD) {
                        held[next][place] = item(first, behind - first);
                        return;
                    }
                }
                Counter items = items_of(behind - first);
                append(edges, state, list, atomicAdd(&progress[TAIL], items));
            });
            expanded += count;
            __syncthreads();
            count = counts[next] < HELD ? counts[next] : HELD;
            if (count == 0) break;
            if (count > blockDim.x || level == LEVELS - 1) {
                if (threadIdx.x == 0) flushed = atomicAdd(&progress[TAIL], (Counter)count);
                __syncthreads();
                for (int i = threadIdx.x; i < count; i += blockDim.x)
                    list[flushed + i] = held[next][i];
                break;
            }
            own = threadIdx.x < count ? held[next][threadIdx.x] : 0;
        }
        __syncthreads();
    }
    finish(progress, expanded);
}

// The first round's list: the edges of each state of a set. One thread a state.
extern "C" __global__ void collect_states(
    const unsigned* __restrict__ set, int states, const OFFSET* __restrict__ offsets,
    const int* __restrict__ groups, Item* list, Counter* progress)
{
    __shared__ int total;
    __shared__ Counter first;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    Edges edges{offsets, groups};
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    int items = 0, place = 0;
    if (state < states && has(set, state)) items = items_of(edges.end(state) - edges.begin(state));
    if (items) place = atomicAdd(&total, items);
    __syncthreads();
    if (threadIdx.x == 0 && total) first = atomicAdd(&progress[TAIL], (Counter)total);
    __syncthreads();
    if (items) append(edges, state, list, first + place);
    finish(progress, 0);
}

// A round of the closure of a set under its states' edges: `ends` holds states, or rows of which
// `state_of` knows the states. Those in `open` may join, and leave `open`. Rows in `barred`, if
// given, do not count.
extern "C" __global__ void close_some(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ ends, const int* __restrict__ state_of,
    const unsigned* __restrict__ barred, unsigned* open, Item* list, Counter* progress)
{
    expand(Edges{offsets, groups}, list, progress, [&](OFFSET edge) {
        int row = ends[edge];
        if (barred && has(barred, row)) return -1;
        int state = state_of ? state_of[row] : row;
        return has(open, state) && take(open, state) ? state : -1;
    });
}

// A round of the closure of a set by the states whose rows all enter it. `entered` starts empty,
// `missing` with the number of each state's rows.
extern "C" __global__ void close_all(
    const OFFSET* __restrict__ offsets, const int* __restrict__ rows,
    const int* __restrict__ state_of, unsigned* entered, int* missing, unsigned* open, Item* list,
    Counter* progress)
{
    expand(Edges{offsets, nullptr}, list, progress, [&](OFFSET edge) {
        int row = rows[edge];
        int state = state_of[row];
        if (!has(open, state) || !put(entered, row)) return -1;
        if (atomicSub(&missing[state], 1) > 1) return -1;
        take(open, state);
        return state;
    });
}

// Bars each row that enters one of the states whose incoming edges are listed.
extern "C" __global__ void bar_rows(
    const OFFSET* __restrict__ offsets, const int* __restrict__ rows, unsigned* barred, Item* list,
    Counter* progress)
{
    expand(Edges{offsets, nullptr}, list, progress, [&](OFFSET edge) {
        if (!has(barred, rows[edge])) put(barred, rows[edge]);
        return -1;
    });
}

// Takes a set's members out of another. One thread a word.
extern "C" __global__ void drop_members(
    unsigned* __restrict__ set, const unsigned* __restrict__ members, int words)
{
    int word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word < words) set[word] &= ~members[word];
}

// How many edges enter each state. One thread an edge.
extern "C" __global__ void count_entering(
    const int* __restrict__ columns, long long edges, OFFSET* counts)
{
    long long edge = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (edge < edges) atomicAdd((UNSIGNED_OFFSET*)&counts[columns[edge]], (UNSIGNED_OFFSET)1);
}

// Puts each edge's row where its target's incoming edges are, filled from their end. One thread an
// edge, so that no row is too long for its thread.
extern "C" __global__ void scatter_rows(
    const OFFSET* __restrict__ offsets, int rows, const int* __restrict__ columns,
    long long edges, OFFSET* cursors, int* entering)
{
    long long edge = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (edge >= edges) return;
    // The last row that begins no later.
    int low = 0, high = rows;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (offsets[middle] <= edge) low = middle;
        else high = middle;
    }
    UNSIGNED_OFFSET* cursor = (UNSIGNED_OFFSET*)&cursors[columns[edge]];
    entering[atomicAdd(cursor, (UNSIGNED_OFFSET)-1) - 1] = low;
}

// The state of each row. One thread a row.
extern "C" __global__ void name_states(
    const int* __restrict__ groups, int states, int rows, int* state_of)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int low = 0, high = states;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (groups[middle] <= row) low = middle;
        else high = middle;
    }
    state_of[row] = low;
}

// How many rows each state has.
extern "C" __global__ void count_rows(const int* __restrict__ groups, int states, int* missing)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states) missing[state] = groups[state + 1] - groups[state];
}
