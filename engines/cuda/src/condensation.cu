// A topological order of a graph's components, by their levels: how many others follow on each.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.
//
// An edge crosses if it leads from one component to another. `labels` are the components of the
// states, negative for none.

// Counts the crossing edges that leave and that enter each component.
struct CountCrossing {
    const int *columns, *labels;
    UNSIGNED_OFFSET *leaving, *entering;
    UNSIGNED_OFFSET crossing;

    __device__ void begin(int) { crossing = 0; }
    __device__ void visit(int state, OFFSET edge)
    {
        int other = labels[columns[edge]];
        if (other < 0 || other == labels[state]) return;
        atomicAdd(&entering[other], (UNSIGNED_OFFSET)1);
        crossing++;
    }
    __device__ void end(int state)
    {
        if (crossing) atomicAdd(&leaving[labels[state]], crossing);
    }
};

// Counts that start as 0. One thread a state.
extern "C" __global__ void count_crossing(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, const int* __restrict__ labels, int states,
    UNSIGNED_OFFSET* leaving, UNSIGNED_OFFSET* entering)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    bool asked = state < states && labels[state] >= 0;
    CountCrossing walk{columns, labels, leaving, entering};
    walk_edges(Edges{offsets, groups}, asked ? state : -1, walk);
}

// Puts both ends of each crossing edge where the edges that enter its target are.
struct ScatterCrossing {
    const int *columns, *labels;
    UNSIGNED_OFFSET* cursors;
    int *sources, *targets;

    __device__ void begin(int) {}
    __device__ void visit(int state, OFFSET edge)
    {
        int own = labels[state], other = labels[columns[edge]];
        if (other < 0 || other == own) return;
        UNSIGNED_OFFSET place = atomicAdd(&cursors[other], (UNSIGNED_OFFSET)-1) - 1;
        sources[place] = own;
        targets[place] = other;
    }
    __device__ void end(int) {}
};

// The cursors come as the ends of the components' parts, and leave as their beginnings. One thread a
// state.
extern "C" __global__ void scatter_crossing(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, const int* __restrict__ labels, int states,
    UNSIGNED_OFFSET* cursors, int* sources, int* targets)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    bool asked = state < states && labels[state] >= 0;
    ScatterCrossing walk{columns, labels, cursors, sources, targets};
    walk_edges(Edges{offsets, groups}, asked ? state : -1, walk);
}

// Begins a list with the components that no edge leaves. One thread a component.
extern "C" __global__ void collect_lowest(
    const OFFSET* __restrict__ cursors, const UNSIGNED_OFFSET* __restrict__ leaving, int count,
    Item* list, Counter* progress)
{
    int own = blockIdx.x * blockDim.x + threadIdx.x;
    bool lowest = own < count && leaving[own] == 0;
    begin_list(Edges{cursors, nullptr}, lowest ? own : -1, list, progress);
}

// A round: components whose last edge is counted down have their level, and are expanded.
extern "C" __global__ void LISTED close_levels(
    const OFFSET* __restrict__ cursors, const int* __restrict__ sources,
    const int* __restrict__ targets, UNSIGNED_OFFSET* leaving, int* levels, Item* list,
    Counter* progress, int most)
{
    Edges edges{cursors, nullptr};
    expand(edges, list, progress, most, [&](OFFSET edge) {
        int above = sources[edge];
        int level = *(volatile int*)&levels[targets[edge]] + 1;
        if (*(volatile int*)&levels[above] < level) atomicMax(&levels[above], level);
        // Whoever counts the last edge down must find the levels that the others raised.
        __threadfence();
        return join(edges, above, [&] {
            return atomicAdd(&leaving[above], (UNSIGNED_OFFSET)-1) == 1;
        });
    });
}

// Level and number of each component, as a number to sort by. One thread a component.
extern "C" __global__ void fill_keys(
    const int* __restrict__ levels, int count, unsigned long long* keys)
{
    int own = blockIdx.x * blockDim.x + threadIdx.x;
    if (own < count) keys[own] = (unsigned long long)levels[own] << 32 | (unsigned)own;
}

// One thread a component.
extern "C" __global__ void name_keys(
    const unsigned long long* __restrict__ keys, int count, int* order)
{
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < count) order[place] = (int)keys[place];
}
