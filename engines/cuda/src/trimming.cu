// Trimming: states that nothing enters, or that nothing leaves, again and again.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.
//
// `open`, `leader`, `cut` and `barred` are those of strongly connected components. `cut_behind` holds
// edges backwards: those of `cut` that are not in barred rows.

// How many edges enter and leave each open state from and to others, on top of NONE: who is not open
// is counted down from there, and one number must not borrow from the other.
struct Counts {
    unsigned entering, leaving;
};

#define NONE 0x40404040u

struct InnerEdges {
    const int* columns;
    const unsigned *cut, *open;
    Counts* counts;
    int inner;

    __device__ void begin(int) { inner = 0; }
    __device__ void visit(int state, OFFSET edge)
    {
        int after = columns[edge];
        if (after == state || is_cut(cut, edge) || !has(open, after)) return;
        atomicAdd(&counts[after].entering, 1u);
        inner++;
    }
    __device__ void end(int state)
    {
        if (inner) atomicAdd(&counts[state].leaving, (unsigned)inner);
    }
};

// Counts that start as NONE. One thread a state.
extern "C" __global__ void count_inner(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, const unsigned* cut, const unsigned* open, int states,
    Counts* counts)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    InnerEdges walk{columns, cut, open, counts};
    bool here = state < states && has(open, state);
    walk_edges(Edges{offsets, groups}, here ? state : -1, walk);
}

// Names a state that is a component of its own.
__device__ void name_alone(int state, unsigned* open, int* leader)
{
    take(open, state);
    leader[state] = state;
}

// Trimming: names the open states that nothing enters, or that nothing leaves, and begins the first or
// the second of two lists with their edges. One thread a state.
extern "C" __global__ void collect_trivial(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const Counts* __restrict__ counts, int states, unsigned* open, int* leader, int second,
    Item* items, Counter size, Counter* progress)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    bool trivial = state < states && has(open, state)
        && (second ? counts[state].leaving : counts[state].entering) == NONE;
    if (trivial) name_alone(state, open, leader);
    List list = one_of_two(second, items, size, progress, blockIdx.x, gridDim.x);
    begin_list(Edges{offsets, groups}, trivial ? state : -1, list);
}

// Counts an edge less of those that enter a state, or that leave it. Returns whether that was the
// last one, after naming the state, unless the other end has counted down, and named it, before.
__device__ bool uncount(int state, bool leaving, Counts* counts, unsigned* open, int* leader)
{
    Counter* both = (Counter*)&counts[state];
    Counter old = atomicAdd(both, leaving ? ~0xffffffffull : ~0ull);
    unsigned here = leaving ? (unsigned)(old >> 32) : (unsigned)old;
    unsigned there = leaving ? (unsigned)old : (unsigned)(old >> 32);
    if (here != NONE + 1 || there <= NONE) return false;
    name_alone(state, open, leader);
    return true;
}

// A round of trimming by what enters the states: the list holds edges of trimmed ones.
extern "C" __global__ void LISTED trim_forwards(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, const unsigned* __restrict__ cut, Counts* counts,
    unsigned* open, int* leader, Item* list, Counter* progress, int most)
{
    Edges edges{offsets, groups};
    expand(edges, list, progress, most, [&](OFFSET edge) {
        if (is_cut(cut, edge)) return nobody();
        int state = columns[edge];
        return join(edges, state, [&] {
            // There is no other end.
            if (atomicSub(&counts[state].entering, 1u) != NONE + 1) return false;
            name_alone(state, open, leader);
            return true;
        });
    });
}

// A round of trimming from both ends: half of the blocks as above, the others by what leaves the
// states, from a second list of edges that enter trimmed ones. Whatever one end comes to that the
// other has trimmed need not be followed: all beyond it is.
extern "C" __global__ void LISTED trim_both(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, const unsigned* __restrict__ cut,
    const OFFSET* __restrict__ offsets_behind, const int* __restrict__ rows,
    const int* __restrict__ state_of, const unsigned* __restrict__ cut_behind,
    const unsigned* __restrict__ barred, Counts* counts, unsigned* open, int* leader, Item* items,
    Counter size, Counter* progress, int most)
{
    int blocks = gridDim.x / 2, block = blockIdx.x % blocks;
    bool backwards = blockIdx.x >= blocks;
    List list = one_of_two(backwards, items, size, progress, block, blocks);
    Edges ahead{offsets, groups}, behind{offsets_behind, nullptr};
    if (!backwards) {
        expand(ahead, list, most, [&](OFFSET edge) {
            if (is_cut(cut, edge)) return nobody();
            int state = columns[edge];
            return join(ahead, state, [&] { return uncount(state, false, counts, open, leader); });
        });
        return;
    }
    expand(behind, list, most, [&](OFFSET edge) {
        int row = rows[edge];
        if (is_cut(cut_behind, edge) || barred && has(barred, row)) return nobody();
        int state = state_of ? state_of[row] : row;
        return join(behind, state, [&] { return uncount(state, true, counts, open, leader); });
    });
}
