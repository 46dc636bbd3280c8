// Worklists over the edges of a model's graph.
//
// Compiled with OFFSET the type of the row offsets, int or long long.
//
// Sets are bitmaps, 32 members a word. Each state that joins or leaves a set is expanded once, by a
// walk over its edges. An item of the list is a range of at most LONGEST edges of a state, so that
// a state which a million others enter is work for many blocks. Sets only grow, or only shrink, and
// a member changes sides by an atomic operation that one thread wins: the order does not matter,
// and the result does not depend on it. So a block need not wait for the others: what it finds it
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

// Begins a list with the edges of a state, -1 for none. Every thread of the block takes part.
__device__ void begin_list(const Edges& edges, int state, Item* list, Counter* progress)
{
    __shared__ int total;
    __shared__ Counter first;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    int items = 0, place = 0;
    if (state >= 0) items = items_of(edges.end(state) - edges.begin(state));
    if (items) place = atomicAdd(&total, items);
    __syncthreads();
    if (threadIdx.x == 0 && total) first = atomicAdd(&progress[TAIL], (Counter)total);
    __syncthreads();
    if (items) append(edges, state, list, first + place);
    finish(progress, 0);
}

// Walks over the edges of a thread's state, -1 for none; over long ones a warp together, each of
// whose lanes calls `begin` and `end` then. Every thread of the warp takes part.
template <class Walk>
__device__ void walk_edges(const Edges& edges, int state, Walk& walk)
{
    OFFSET edge = 0, end = 0;
    if (state >= 0) {
        edge = edges.begin(state);
        end = edges.end(state);
    }
    unsigned left = __ballot_sync(ALL_LANES, end - edge >= LONG_FOR_A_THREAD);
    bool own = state >= 0 && end - edge < LONG_FOR_A_THREAD;
    for (; left; left &= left - 1) {
        int owner = __ffs(left) - 1;
        OFFSET from = __shfl_sync(ALL_LANES, edge, owner);
        OFFSET to = __shfl_sync(ALL_LANES, end, owner);
        int whose = __shfl_sync(ALL_LANES, state, owner);
        walk.begin(whose);
        for (OFFSET shared = from + threadIdx.x % 32; shared < to; shared += 32)
            walk.visit(whose, shared);
        walk.end(whose);
    }
    if (!own) return;
    walk.begin(state);
    for (; edge < end; edge++) walk.visit(state, edge);
    walk.end(state);
}

// Whether an edge is in a set of edges, null for the empty one.
__device__ bool is_cut(const unsigned* cut, OFFSET edge)
{
    return cut && cut[edge / 32] >> (int)(edge % 32) & 1;
}
