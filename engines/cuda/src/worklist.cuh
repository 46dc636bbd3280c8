// Worklists over the edges of a model's graph.
//
// Compiled with OFFSET the type of the row offsets, int or long long.
//
// Sets are bitmaps, 32 members a word. Each state that joins or leaves a set is expanded once, by a
// walk over its edges. An item of the list is a range of at most LONGEST edges of a state, so that
// a state which a million others enter is work for many blocks. Sets only grow, or only shrink, and
// a member changes sides by an atomic operation that one thread wins: the order does not matter,
// and the result does not depend on it. So a block need not wait for the others: what it finds it
// keeps, in shared memory, and goes on from there for some levels, as long as it is little.
//
// Where a graph is deep and narrow, so that a list is short, round after round, blocks that do not
// wait get ahead of each other: what one found is held up by what another is yet to find. There one
// team of blocks works off level after level, and waits after each: of eight blocks where the
// device knows teams (clusters of blocks, since compute capability 9.0), of one elsewhere: TEAM.

typedef unsigned long long Counter;
typedef unsigned long long Item;  // first edge · 2^13 + number of edges

#define LENGTH_BITS 13
#define LONGEST 4096
#define HELD 1024
#define LONG_FOR_A_THREAD 32
#define MOST_LANES 8
#define ALL_LANES 0xffffffffu

// Blocks of so many threads work as a team, others for themselves.
#define TEAM_THREADS 1024

#ifndef TEAM
#define TEAM (__CUDA_ARCH__ >= 900 ? 8 : 1)
#endif

#if TEAM > 1
#define LISTED __launch_bounds__(TEAM_THREADS) __cluster_dims__(TEAM, 1, 1)
#else
#define LISTED __launch_bounds__(TEAM_THREADS)
#endif

// What is common to all rounds: the round's part of the list, the list's end, the blocks that have
// finished the round, the items expanded, and the levels of all rounds so far.
enum { BEGIN, END, TAIL, FINISHED, EXPANDED, LEVELS, COUNTERS };

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

// A list, and the blocks that work it off. Two lists may share their memory, one from its end
// downwards.
struct List {
    Item* items;
    Counter* progress;
    int step;  // to the next item: 1 or -1
    int block, blocks;

    __device__ Item& operator[](Counter place) const { return items[(long long)place * step]; }
};

// The only list of a kernel.
__device__ List only_list(Item* items, Counter* progress)
{
    return {items, progress, 1, (int)blockIdx.x, (int)gridDim.x};
}

// The first or the second of two lists, of `size` items together.
__device__ List one_of_two(
    bool second, Item* items, Counter size, Counter* progress, int block, int blocks)
{
    if (second) return {items + size - 1, progress + COUNTERS, -1, block, blocks};
    return {items, progress, 1, block, blocks};
}

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
__device__ void append(const Edges& edges, int state, const List& list, Counter place)
{
    OFFSET end = edges.end(state);
    for (OFFSET first = edges.begin(state); first < end; first += LONGEST)
        list[place++] = item(first, end - first);
}

// Ends a block's part of a round; the last block to do so makes what was appended the next round.
// Every thread of the block takes part.
__device__ void finish(const List& list, Counter expanded, Counter levels)
{
    __syncthreads();
    if (threadIdx.x > 0) return;
    Counter* progress = list.progress;
    if (expanded) atomicAdd(&progress[EXPANDED], expanded);
    __threadfence();
    if (atomicAdd(&progress[FINISHED], (Counter)1) + 1 < list.blocks) return;
    progress[BEGIN] = progress[END];
    progress[END] = atomicAdd(&progress[TAIL], (Counter)0);
    progress[FINISHED] = 0;
    progress[LEVELS] += levels;
}

// How many lanes share each of so many items among so many threads: then nobody waits for a thread
// that follows one edge after the other.
__device__ int lanes_of(int items, int threads)
{
    int lanes = 1;
    while (lanes < MOST_LANES && 2 * lanes * items <= threads) lanes *= 2;
    return lanes;
}

// Calls `visit` for each edge of an item, which so many neighbouring lanes share, or a warp as a
// whole where it is long. Every thread of the warp takes part, an item of 0 is none.
template <class Visit>
__device__ void walk(Item own, int lanes, Visit visit)
{
    OFFSET edge = (OFFSET)(own >> LENGTH_BITS);
    OFFSET end = edge + (OFFSET)(own & ((1 << LENGTH_BITS) - 1));
    int lane = threadIdx.x % 32, place = lane % lanes;
    bool long_ = end - edge >= LONG_FOR_A_THREAD * lanes;
    unsigned left = __ballot_sync(ALL_LANES, long_ && place == 0);
    for (; left; left &= left - 1) {
        int owner = __ffs(left) - 1;
        OFFSET from = __shfl_sync(ALL_LANES, edge, owner);
        OFFSET to = __shfl_sync(ALL_LANES, end, owner);
        for (OFFSET shared = from + lane; shared < to; shared += 32) visit(shared);
    }
    if (long_) return;
    for (edge += place; edge < end; edge += lanes) visit(edge);
}

// A state that joins a set, -1 for none, and its edges.
struct Joined {
    int state;
    OFFSET first, behind;
};

__device__ Joined nobody() { return {-1, 0, 0}; }

__device__ Joined with_edges(const Edges& edges, int state)
{
    return {state, edges.begin(state), edges.end(state)};
}

// The state that an edge led to, if `claim` says that it joins. A team does not wait for that before
// it asks for the state's edges: all of a level wait for the slowest.
template <class Claim>
__device__ Joined join(const Edges& edges, int state, Claim claim)
{
    if (blockDim.x != TEAM_THREADS) return claim() ? with_edges(edges, state) : nobody();
    Joined early = with_edges(edges, state);
    return claim() ? early : nobody();
}

// Calls `place` with the item of a state that joined, unless it has no edges, and appends it to the
// list if `place` had no room.
template <class Place>
__device__ void keep(const Edges& edges, Joined joined, const List& list, Place place)
{
    OFFSET length = joined.behind - joined.first;
    if (length == 0) return;
    if (length <= LONGEST && place(item(joined.first, length))) return;
    Counter behind = atomicAdd(&list.progress[TAIL], (Counter)items_of(length));
    append(edges, joined.state, list, behind);
}

// Appends items that a block holds to the list. Every thread of the block takes part.
__device__ void flush(const Item* held, int count, const List& list)
{
    __shared__ Counter first;
    if (threadIdx.x == 0) first = atomicAdd(&list.progress[TAIL], (Counter)count);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) list[first + i] = held[i];
}

// A block's number in its team.
__device__ int rank_in_team()
{
#if TEAM > 1
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
#else
    return 0;
#endif
}

// Waits for the team; what any of its threads has written is seen by all. Every thread takes part.
__device__ void meet()
{
#if TEAM > 1
    __syncwarp();
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// Where another block of the team has the same shared variable.
template <class Type>
__device__ Type* of_member(Type* shared, int rank)
{
#if TEAM > 1
    unsigned long long there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"((unsigned long long)shared), "r"(rank));
    return (Type*)there;
#else
    return shared;
#endif
}

// What a block holds of a level, and of the next one. What a member finds it hands to all members in
// turns, without asking: each has a part of every other's memory for itself.
struct Holding {
    Item (*held)[HELD];
    int (*handed)[TEAM];  // how many items each member has handed out
    int* found;           // how many this block has

    __device__ const Item* part(int level, int from) const
    {
        return &held[level % 2][from * (HELD / TEAM)];
    }

    // Hands an item of a level to the member whose turn it is; returns whether there was room.
    __device__ bool hand(int level, int rank, Item joined)
    {
        int place = atomicAdd(&found[level % 2], 1);
        if (place >= HELD) return false;
        Item* there = &held[level % 2][rank * (HELD / TEAM) + place / TEAM];
        *of_member(there, (rank + place) % TEAM) = joined;
        return true;
    }

    // Ends the finding of a level, by all members. Every thread takes part.
    __device__ void announce(int level, int rank)
    {
        __syncthreads();
        if (threadIdx.x < TEAM)
            *of_member(&handed[level % 2][rank], threadIdx.x) = found[level % 2];
        // Read when the last level was announced; nobody adds to it before the meeting.
        if (threadIdx.x == 0) found[(level + 1) % 2] = 0;
        meet();
    }

    // How many items of a level one member has handed to another.
    __device__ int share(int level, int from, int to) const
    {
        int count = handed[level % 2][from], first = (unsigned)(to - from) % TEAM;
        count = count < HELD ? count : HELD;
        return count > first ? (count - first - 1) / TEAM + 1 : 0;
    }
};

// Rounds of one team, up to so many levels, as long as a level has room in its members' memories. In
// each member some warps work off what it was handed by one of them.
template <class Found>
__device__ void descend(
    const Edges& edges, const List& list, int most, Holding holding, Found found)
{
    Counter* progress = list.progress;
    Counter begin = progress[BEGIN], count = progress[END] - begin, expanded = 0;
    int rank = rank_in_team(), level = 0;
    if (count == 0 || count > TEAM * HELD) return;
    if (threadIdx.x < 2) holding.found[threadIdx.x] = 0;
    // Nobody is handed anything, or left, before all are there.
    meet();
    for (Counter i = rank + TEAM * threadIdx.x; i < count; i += TEAM * blockDim.x)
        holding.hand(level, rank, list[begin + i]);
    int threads = blockDim.x / TEAM, from = threadIdx.x / threads, thread = threadIdx.x % threads;
    for (;; level++) {
        holding.announce(level, rank);
        int handed = threadIdx.x % 32 < TEAM ? holding.handed[level % 2][threadIdx.x % 32] : 0;
        bool over = level == most || !__any_sync(ALL_LANES, handed > 0);
        over |= __any_sync(ALL_LANES, handed > HELD);
        int own = holding.share(level, from, rank);
        const Item* items = holding.part(level, from);
        if (over) {
            for (int i = thread; i < own; i += threads)
                list[atomicAdd(&progress[TAIL], (Counter)1)] = items[i];
            break;
        }
        int lanes = lanes_of(own, threads);
        for (int first = 0; first < own; first += threads / lanes) {
            int i = first + thread / lanes;
            walk(i < own ? items[i] : 0, lanes, [&](OFFSET edge) {
                Joined joined = found(edge);
                if (joined.state < 0) return;
                keep(edges, joined, list, [&](Item own) {
                    return holding.hand(level + 1, rank, own);
                });
            });
        }
        if (thread == 0) expanded += own;
    }
    if (thread == 0 && threadIdx.x > 0) atomicAdd(&progress[EXPANDED], expanded);
    finish(list, expanded, level);
}

// What the blocks of a round, or of a team, hold.
struct BlockMemory {
    Item held[2][HELD];
    int counts[2], handed[2][TEAM];
};

// The same memory for each list that a kernel knows.
__device__ BlockMemory& block_memory()
{
    __shared__ BlockMemory memory;
    return memory;
}

// A round: expands the round's part of the list. `found` maps an edge to the state that joins the
// set because of it, if one does. Blocks, or a team of them, go on with what they found for up to `most`
// levels.
template <class Found>
__device__ void expand(const Edges& edges, const List& list, int most, Found found)
{
    BlockMemory& memory = block_memory();
    auto& held = memory.held;
    auto& counts = memory.counts;
    if (blockDim.x == TEAM_THREADS) {
        descend(edges, list, most, Holding{held, memory.handed, counts}, found);
        return;
    }
    Counter begin = list.progress[BEGIN], end = list.progress[END];
    if (begin == end) return;
    // Few items are spread over all blocks, each of which takes its own the further.
    Counter share = (end - begin + list.blocks - 1) / list.blocks;
    if (share > blockDim.x) share = blockDim.x;
    Counter expanded = 0;
    for (begin += list.block * share; begin < end; begin += list.blocks * share) {
        int count = (int)(end - begin < share ? end - begin : share);
        const Item* items = nullptr;
        for (int level = 0;; level++) {
            int next = level % 2;
            if (threadIdx.x == 0) counts[next] = 0;
            __syncthreads();
            int lanes = lanes_of(count, blockDim.x), place = threadIdx.x / lanes;
            Item mine = place >= count ? 0 : items ? items[place] : list[begin + place];
            walk(mine, lanes, [&](OFFSET edge) {
                Joined joined = found(edge);
                if (joined.state < 0) return;
                keep(edges, joined, list, [&](Item own) {
                    int place = atomicAdd(&counts[next], 1);
                    if (place < HELD) held[next][place] = own;
                    return place < HELD;
                });
            });
            expanded += count;
            __syncthreads();
            count = counts[next] < HELD ? counts[next] : HELD;
            if (count == 0) break;
            if (count > blockDim.x || level == most - 1) {
                flush(held[next], count, list);
                break;
            }
            items = held[next];
        }
        __syncthreads();
    }
    finish(list, expanded, most);
}

template <class Found>
__device__ void expand(const Edges& edges, Item* items, Counter* progress, int most, Found found)
{
    expand(edges, only_list(items, progress), most, found);
}

// Begins a list with the edges of a state, -1 for none. Every thread of the block takes part.
__device__ void begin_list(const Edges& edges, int state, const List& list)
{
    __shared__ int total;
    __shared__ Counter first;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    int items = 0, place = 0;
    if (state >= 0) items = items_of(edges.end(state) - edges.begin(state));
    if (items) place = atomicAdd(&total, items);
    __syncthreads();
    if (threadIdx.x == 0 && total) first = atomicAdd(&list.progress[TAIL], (Counter)total);
    __syncthreads();
    if (items) append(edges, state, list, first + place);
    finish(list, 0, 0);
}

__device__ void begin_list(const Edges& edges, int state, Item* items, Counter* progress)
{
    begin_list(edges, state, only_list(items, progress));
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
