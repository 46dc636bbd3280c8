// Strongly connected components.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.
//
// `open` is the set of states without a component so far; whoever leaves it gets its `leader`, the
// state that its component is called by. Edges in `cut`, and those of rows in `barred`, do not
// count; neither do those to states that are not open, and loops.

// Where the edges of each state begin, and where the last one's end. One thread a place.
extern "C" __global__ void gather_offsets(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups, int places,
    OFFSET* of_states)
{
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < places) of_states[place] = offsets[groups[place]];
}

// Adds to a set what another one has lost. One thread a word.
extern "C" __global__ void add_lost(
    const unsigned* __restrict__ before, const unsigned* __restrict__ after, int words,
    unsigned* set)
{
    int word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word < words) set[word] |= before[word] & ~after[word];
}

// How many members a set has. One thread a word.
extern "C" __global__ void count_members(
    const unsigned* __restrict__ set, int words, unsigned long long* total)
{
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    int word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word < words && set[word]) atomicAdd(&sum, __popc(set[word]));
    __syncthreads();
    if (threadIdx.x == 0 && sum) atomicAdd(total, (unsigned long long)sum);
}

// Numbers that look random, each of another state, and the way back. The constants are those of
// lowbias32 (Wellons 2018, Prospecting for hash functions).
__device__ unsigned shuffled(unsigned state)
{
    state = (state ^ state >> 16) * 0x7feb352du;
    state = (state ^ state >> 15) * 0x846ca68bu;
    return state ^ state >> 16;
}

__device__ unsigned unshuffled(unsigned name)
{
    name = (name ^ name >> 16) * 0x43021123u;
    name = (name ^ name >> 15 ^ name >> 30) * 0x1d69e2a5u;
    return name ^ name >> 16;
}

// Raises a number; returns whether it was lower.
__device__ bool raise(unsigned* number, unsigned to)
{
    return *(volatile unsigned*)number < to && atomicMax(number, to) < to;
}

// Where a region's pivot is looked up; two regions may share a place, one of which goes without a
// pivot then, unless they are called by numbers of states. The region of a state is called by `region`,
// and 0 if that is null. If the sets are not null, those states of a region are another one that are in
// neither, in both, or in one of them.
__device__ unsigned place_of(
    const int* region, const unsigned* one, const unsigned* other, int state, unsigned places)
{
    unsigned name = region ? region[state] : 0;
    if (one && has(one, state)) name += 0x9e3779b1u;
    if (other && has(other, state)) name += 0x85ebca6bu;
    return name < places ? name : (unsigned)((unsigned long long)shuffled(name) * places >> 32);
}

// Chooses a state of each region, by its shuffled number; `pivots` starts as 0. One thread a state.
extern "C" __global__ void find_pivots(
    const unsigned* __restrict__ open, int states, const int* __restrict__ region,
    const unsigned* __restrict__ one, const unsigned* __restrict__ other, unsigned places,
    unsigned* pivots)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states && has(open, state))
        raise(&pivots[place_of(region, one, other, state, places)], shuffled(state));
}

// Calls regions by their chosen states, and makes a set of these. One thread a state.
extern "C" __global__ void name_regions(
    const unsigned* __restrict__ open, int states, int by_regions,
    const unsigned* __restrict__ one, const unsigned* __restrict__ other, unsigned places,
    const unsigned* __restrict__ pivots, int* region, unsigned* chosen)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x, pivot = -1;
    if (state < states && has(open, state)) {
        const int* old = by_regions ? region : nullptr;
        pivot = unshuffled(pivots[place_of(old, one, other, state, places)]);
        region[state] = pivot;
    }
    unsigned word = __ballot_sync(ALL_LANES, state < states && pivot == state);
    if (state < states && state % 32 == 0) chosen[state / 32] = word;
}

// A set of edges while lanes add to it, each some edges of the same word at a time.
struct Cutting {
    unsigned* cut;
    OFFSET word;
    unsigned bits;

    __device__ void add(OFFSET edge)
    {
        if (edge / 32 != word) write();
        word = edge / 32;
        bits |= 1u << (int)(edge % 32);
    }
    __device__ void write()
    {
        if (bits) atomicOr(&cut[word], bits);
        bits = 0;
    }
};

struct CrossingEdges {
    const int *ends, *state_of, *region;
    const unsigned* open;
    Cutting cutting;
    bool any;
    int own;

    __device__ void begin(int state) { own = region[state]; }
    __device__ void visit(int, OFFSET edge)
    {
        int other = state_of ? state_of[ends[edge]] : ends[edge];
        if (!has(open, other) || region[other] == own) return;
        cutting.add(edge);
        any = true;
    }
    __device__ void end(int) { cutting.write(); }
};

// Cuts edges between open states of different regions; `ends` holds states, or rows of which
// `state_of` knows the states. Sets `crossed` if there are any. One thread a state.
extern "C" __global__ void cut_crossing(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ ends, const int* __restrict__ state_of,
    const unsigned* __restrict__ open, int states, const int* __restrict__ region, unsigned* cut,
    int* crossed)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    bool here = state < states && has(open, state);
    CrossingEdges walk{ends, state_of, region, open, Cutting{cut, 0, 0}, false};
    walk_edges(Edges{offsets, groups}, here ? state : -1, walk);
    if (walk.any && !*(volatile int*)crossed) *crossed = 1;
}

// Appends a state, -1 for none, to a list; every thread of the warp takes part.
__device__ void append_state(int state, int* list, int* count)
{
    unsigned there = __ballot_sync(ALL_LANES, state >= 0);
    int lane = threadIdx.x % 32, first = 0;
    if (lane == 0 && there) first = atomicAdd(count, __popc(there));
    first = __shfl_sync(ALL_LANES, first, 0);
    if (state >= 0) list[first + __popc(there & (1u << lane) - 1)] = state;
}

// Lists the open states. One thread a state.
extern "C" __global__ void collect_open(
    const unsigned* __restrict__ open, int states, int* list, int* count)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    append_state(state < states && has(open, state) ? state : -1, list, count);
}

struct OuterEdges {
    const int* columns;
    const unsigned* open;
    unsigned* cut;

    __device__ void begin(int) {}
    __device__ void visit(int state, OFFSET edge)
    {
        int after = columns[edge];
        if (after == state || !has(open, after)) atomicOr(&cut[edge / 32], 1u << (int)(edge % 32));
    }
    __device__ void end(int) {}
};

// Cuts loops, and edges that leave the open states. One thread a listed state.
extern "C" __global__ void cut_outer(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, const unsigned* __restrict__ open,
    const int* __restrict__ list, int count, unsigned* cut)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    OuterEdges walk{columns, open, cut};
    walk_edges(Edges{offsets, groups}, i < count ? list[i] : -1, walk);
}

// Puts the listed states into one region. One thread a listed state.
extern "C" __global__ void begin_region(const int* __restrict__ list, int count, int* leader)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) leader[list[i]] = 0;
}

// The largest names that a state is known to be reached by, and to reach. A name is a state's
// number, shuffled or as it is.
struct Names {
    unsigned before, after;
};

__device__ unsigned name_of(int state, bool mixed) { return mixed ? shuffled(state) : state; }
__device__ int state_of_name(unsigned name, bool mixed) { return mixed ? unshuffled(name) : name; }

__device__ Names names_of(const Names* names, int state)
{
    unsigned long long both = *(const volatile unsigned long long*)&names[state];
    return {(unsigned)both, (unsigned)(both >> 32)};
}

// One thread a listed state.
extern "C" __global__ void begin_names(
    const int* __restrict__ list, int count, int mixed, Names* names)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned own = name_of(list[i], mixed);
    names[list[i]] = {own, own};
}

// What a state has to do, four bits a state, eight states a word: to push `before` to its successors
// and `after` to its predecessors, because they have grown.
enum { FORWARDS = 1, BACKWARDS = 2, BOTH_ENDS = 4 };

// Gives a state something to do, because a name was raised before.
__device__ void mark(unsigned* due, int state, unsigned what)
{
    unsigned bits = what << state % 8 * 4;
    __threadfence();
    if ((*(volatile unsigned*)&due[state / 8] & bits) != bits) atomicOr(&due[state / 8], bits);
}

// Returns what a state has to do, and takes it off; names are to be read afterwards.
__device__ unsigned take_due(unsigned* due, int state)
{
    unsigned* word = &due[state / 8];
    int shift = state % 8 * 4;
    if (!(*(volatile unsigned*)word >> shift & 15)) return 0;
    unsigned what = atomicAnd(word, ~(15u << shift)) >> shift & 15;
    __threadfence();
    return what;
}

struct Raising {
    const int* columns;
    const unsigned* cut;
    Names* names;
    unsigned* due;
    Names own;
    bool moved;

    __device__ void begin(int state) { own = names_of(names, state); }
    __device__ void visit(int, OFFSET edge)
    {
        if (is_cut(cut, edge)) return;
        int next = columns[edge];
        Names there = names_of(names, next);
        if (there.before < own.before) raise_before(next, own.before);
        if (there.after > own.after) own.after = there.after;
    }
    __device__ void end(int state) { raise_after(state, own.after); }

    __device__ void raise_before(int state, unsigned to)
    {
        if (!raise(&names[state].before, to)) return;
        mark(due, state, FORWARDS);
        moved = true;
    }
    __device__ void raise_after(int state, unsigned to)
    {
        if (!raise(&names[state].after, to)) return;
        mark(due, state, BACKWARDS);
        moved = true;
    }
};

// The edges that enter a state, without a set of those that were cut: `region` is the same at both
// ends of all others.
struct RaisingBehind {
    const int *rows, *state_of, *region;
    const unsigned *barred, *open;
    Raising& raising;
    unsigned own;

    __device__ void begin(int state) { own = names_of(raising.names, state).after; }
    __device__ void visit(int state, OFFSET edge)
    {
        int row = rows[edge];
        if (barred && has(barred, row)) return;
        int before = state_of ? state_of[row] : row;
        if (!has(open, before) || region[before] != region[state]) return;
        if (names_of(raising.names, before).after < own) raising.raise_after(before, own);
    }
    __device__ void end(int) {}
};

// A sweep: names pass along edges, and along what names tell: if a reaches s, and s reaches b, then
// whoever reaches a reaches s, and what b reaches is reached by s; b is reached by whoever reaches
// s, and a reaches what s reaches. A warp repeats its part while that raises names. `changed` starts
// as 0; once a sweep has changed nothing, later ones do nothing. With `every`, all states take part,
// and learn `after` from their successors; else those do whose names have grown, and these need the
// edges backwards: `rows_behind` by `offsets_behind`. One thread a listed state.
extern "C" __global__ void raise_names(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, const unsigned* __restrict__ cut,
    const OFFSET* __restrict__ offsets_behind, const int* __restrict__ rows_behind,
    const int* __restrict__ state_of, const unsigned* __restrict__ barred,
    const unsigned* __restrict__ open, const int* __restrict__ region,
    const int* __restrict__ list, int count, int mixed, int every, int passes, Names* names,
    unsigned* due, int sweep, int* changed)
{
    if (sweep > 0 && changed[sweep - 1] == 0) return;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int state = i < count ? list[i] : -1;
    bool any = false;
    for (int pass = 0; pass < passes; pass++) {
        unsigned what = 0;
        if (state >= 0) what = every ? BOTH_ENDS : take_due(due, state);
        if (!__any_sync(ALL_LANES, what)) break;
        Raising walk{columns, cut, names, due};
        walk.moved = false;
        Names old = {0, 0};
        if (what) old = names_of(names, state);
        walk_edges(Edges{offsets, groups}, what & (FORWARDS | BOTH_ENDS) ? state : -1, walk);
        if (what) {
            Names own = names_of(names, state);
            int first = state_of_name(old.before, mixed), last = state_of_name(old.after, mixed);
            if (first != state) {
                walk.raise_before(state, names_of(names, first).before);
                walk.raise_after(first, own.after);
            }
            if (last != state) {
                walk.raise_after(state, names_of(names, last).after);
                walk.raise_before(last, own.before);
            }
        }
        if (__any_sync(ALL_LANES, what & BACKWARDS)) {
            RaisingBehind behind{rows_behind, state_of, region, barred, open, walk};
            walk_edges(
                Edges{offsets_behind, nullptr}, what & BACKWARDS ? state : -1, behind);
        }
        if (!__any_sync(ALL_LANES, walk.moved)) break;
        any = true;
    }
    if (any && threadIdx.x % 32 == 0) changed[sweep] = 1;
}

struct Dividing {
    const int* columns;
    const Names* names;
    unsigned* cut;
    Names own;

    __device__ void begin(int state) { own = names[state]; }
    __device__ void visit(int, OFFSET edge)
    {
        if (is_cut(cut, edge)) return;
        Names there = names[columns[edge]];
        if (there.before != own.before || there.after != own.after)
            atomicOr(&cut[edge / 32], 1u << (int)(edge % 32));
    }
    __device__ void end(int) {}
};

// Ends a round. States with both names the same make up the component of the state so called; for
// the others, edges between states with different names are cut, and `leader` is the region, in which
// all names are the same. That two regions may be called the same only costs time. One thread a
// listed state.
extern "C" __global__ void cut_different(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, unsigned* cut, const int* __restrict__ list, int count,
    int mixed, const Names* __restrict__ names, unsigned* open, int* leader, int* rest,
    int* rest_count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int state = i < count ? list[i] : -1;
    Names own = {0, 0};
    if (state >= 0) own = names[state];
    bool named = own.before == own.after;
    Dividing walk{columns, names, cut};
    walk_edges(Edges{offsets, groups}, state, walk);
    if (state >= 0 && named) {
        take(open, state);
        leader[state] = state_of_name(own.before, mixed);
    } else if (state >= 0) {
        leader[state] = shuffled(shuffled(leader[state] + own.before) + own.after);
    }
    append_state(named ? -1 : state, rest, rest_count);
}

// The smallest state of each component, by leader; `smallest` starts as the largest numbers. Leaders
// of states without a component are negative. One thread a state.
extern "C" __global__ void find_smallest(
    const int* __restrict__ leader, int states, unsigned* smallest)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state >= states || leader[state] < 0) return;
    unsigned* own = &smallest[leader[state]];
    if (*(volatile unsigned*)own > state) atomicMin(own, (unsigned)state);
}

// One thread a state.
extern "C" __global__ void flag_smallest(
    const int* __restrict__ leader, int states, const unsigned* __restrict__ smallest, int* flags)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states) flags[state] = leader[state] >= 0 && smallest[leader[state]] == state;
}

// Numbers the components from the inclusive sums of the flags, in place of the leaders. One thread a
// state.
extern "C" __global__ void name_by_number(
    int* leader, int states, const unsigned* __restrict__ smallest, const int* __restrict__ sums)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states && leader[state] >= 0) leader[state] = sums[smallest[leader[state]]] - 1;
}

struct LeavingEdges {
    const int *columns, *labels;
    bool* left;
    bool leaves;

    __device__ void begin(int) { leaves = false; }
    __device__ void visit(int state, OFFSET edge)
    {
        leaves |= labels[columns[edge]] != labels[state];
    }
    __device__ void end(int state)
    {
        if (leaves) left[labels[state]] = true;
    }
};

// Marks the components that an edge leaves. One thread a state.
extern "C" __global__ void mark_left(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, const int* __restrict__ labels, int states, bool* left)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    bool asked = state < states && labels[state] >= 0 && !left[labels[state]];
    LeavingEdges walk{columns, labels, left};
    walk_edges(Edges{offsets, groups}, asked ? state : -1, walk);
}
