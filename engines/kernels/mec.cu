// Maximal end components of MDPs.
//
// Compiled with OFFSET the type of the row offsets, int or long long.
//
// `barred` is the set of rows that cannot be kept to, `usable` the number of others that each state
// has. `leader` names the component that a state was last found in, or is negative.

// Makes the states of a set one component. One thread a state.
extern "C" __global__ void begin_regions(
    const unsigned* __restrict__ set, int states, int* leader)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states) leader[state] = has(set, state) ? 0 : -1;
}

// How many rows of each state are not barred. One thread a state.
extern "C" __global__ void count_usable(
    const int* __restrict__ groups, int states, const unsigned* __restrict__ barred, int* usable)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state >= states) return;
    int found = 0;
    for (int row = groups[state]; row < groups[state + 1]; row++) found += !has(barred, row);
    usable[state] = found;
}

struct LeavingRows {
    const int *columns, *leader, *state_of;
    unsigned *barred, *changed;
    int* usable;
    int home;
    bool leaves;

    __device__ void begin(int row)
    {
        home = leader[state_of[row]];
        leaves = false;
    }
    __device__ void visit(int, OFFSET edge) { leaves |= leader[columns[edge]] != home; }
    __device__ void end(int row)
    {
        if (!leaves || !put(barred, row)) return;
        atomicSub(&usable[state_of[row]], 1);
        if (!has(changed, home)) put(changed, home);
    }
};

// Bars the rows that are empty or, if `columns` are given, may leave their component. One thread a
// row.
extern "C" __global__ void bar_leaving(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, int rows,
    const int* __restrict__ state_of, const unsigned* __restrict__ among,
    const int* __restrict__ leader, unsigned* barred, int* usable, unsigned* changed)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    bool asked = row < rows && !has(barred, row) && has(among, state_of[row]);
    if (asked && offsets[row] == offsets[row + 1]) {
        put(barred, row);
        atomicSub(&usable[state_of[row]], 1);
        asked = false;
    }
    if (!columns) return;
    LeavingRows walk{columns, leader, state_of, barred, changed, usable};
    walk_edges(Edges{offsets, nullptr}, asked ? row : -1, walk);
}

// Removes the states that have no row left, and begins a list with the edges that enter them. One
// thread a state.
extern "C" __global__ void collect_stuck(
    const OFFSET* __restrict__ offsets, const unsigned* __restrict__ among,
    const int* __restrict__ usable, int states, unsigned* kept, Item* list, Counter* progress)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    bool stuck = state < states && has(among, state) && usable[state] == 0;
    if (stuck) take(kept, state);
    begin_list(Edges{offsets, nullptr}, stuck ? state : -1, list, progress);
}

// A round of the removals: rows that enter removed states are barred.
extern "C" __global__ void LISTED close_stuck(
    const OFFSET* __restrict__ offsets, const int* __restrict__ rows,
    const int* __restrict__ state_of, const int* __restrict__ leader, unsigned* barred,
    int* usable, unsigned* changed, unsigned* kept, Item* list, Counter* progress, int most)
{
    expand(Edges{offsets, nullptr}, list, progress, most, [&](OFFSET edge) {
        int row = rows[edge];
        int state = state_of[row];
        if (!has(kept, state) || has(barred, row) || !put(barred, row)) return -1;
        if (!has(changed, leader[state])) put(changed, leader[state]);
        if (atomicSub(&usable[state], 1) > 1) return -1;
        take(kept, state);
        return state;
    });
}

// The kept states whose component has lost a row. One thread a word.
extern "C" __global__ void collect_changed(
    const unsigned* __restrict__ kept, int states, const int* __restrict__ leader,
    const unsigned* __restrict__ changed, unsigned* found)
{
    int word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= (states + 31) / 32) return;
    unsigned members = 0;
    for (unsigned left = kept[word]; left; left &= left - 1)
        if (has(changed, leader[word * 32 + __ffs(left) - 1])) members |= left & -left;
    found[word] = members;
}

struct CutRow {
    unsigned* cut;

    __device__ void begin(int) {}
    __device__ void visit(int, OFFSET edge)
    {
        unsigned bit = 1u << (int)(edge % 32);
        if (!(cut[edge / 32] & bit)) atomicOr(&cut[edge / 32], bit);
    }
    __device__ void end(int) {}
};

// Cuts the edges of barred rows. One thread a row.
extern "C" __global__ void cut_rows(
    const OFFSET* __restrict__ offsets, int rows, const int* __restrict__ state_of,
    const unsigned* __restrict__ among, const unsigned* __restrict__ barred, unsigned* cut)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    bool asked = row < rows && has(barred, row) && has(among, state_of[row]);
    CutRow walk{cut};
    walk_edges(Edges{offsets, nullptr}, asked ? row : -1, walk);
}

// Bars the rows of states that are not kept. One thread a row.
extern "C" __global__ void bar_dropped(
    int rows, const int* __restrict__ state_of, const unsigned* __restrict__ kept, unsigned* barred)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && !has(kept, state_of[row])) put(barred, row);
}

// Leaves the states that are not kept without a component. One thread a state.
extern "C" __global__ void drop_leaders(
    const unsigned* __restrict__ kept, int states, int* leader)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states && !has(kept, state)) leader[state] = -1;
}
