// Maximal end components of MDPs.
//
// Compiled with OFFSET the type of the row offsets, int or long long.
//
// `barred` is the set of rows that cannot be kept to, `usable` the number of others that each state
// has. `leader` names the component that a state was last found in, or is negative. The states of
// `alone`, which may be null, are components of their own.

// Makes the states of a set one component. One thread a state.
extern "C" __global__ void begin_regions(
    const unsigned* __restrict__ set, int states, int* leader)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states) leader[state] = has(set, state) ? 0 : -1;
}

// Makes the states of a set components of their own. One thread a state.
extern "C" __global__ void name_alone_in(
    const unsigned* __restrict__ set, int states, int* leader)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states && has(set, state)) leader[state] = state;
}

// Whether any of so many ranges is empty, by where they and the next ones begin. One thread a range.
template <class Begin>
__device__ void look_for_empty(const Begin* begins, int ranges, int* found)
{
    int range = blockIdx.x * blockDim.x + threadIdx.x;
    bool empty = range < ranges && begins[range] == begins[range + 1];
    if (__any_sync(ALL_LANES, empty) && threadIdx.x % 32 == 0) *found = 1;
}

// Sets `found` if a state has no row. One thread a state.
extern "C" __global__ void find_rowless(const int* __restrict__ groups, int states, int* found)
{
    look_for_empty(groups, states, found);
}

// Sets `found` if a row has no edge. One thread a row.
extern "C" __global__ void find_empty(const OFFSET* __restrict__ offsets, int rows, int* found)
{
    look_for_empty(offsets, rows, found);
}

struct LeavingRows {
    const OFFSET* offsets;
    const int *columns, *leader, *state_of;
    const unsigned* alone;
    unsigned *barred, *changed;
    int row, home, state;
    bool leaves, stays, own_leaves;

    __device__ void begin(int row)
    {
        state = state_of[row];
        home = leader[state];
        leaves = false;
        // Of a long row each lane sees a part.
        stays = offsets[row + 1] - offsets[row] >= LONG_FOR_A_THREAD;
    }
    __device__ void visit(int, OFFSET edge)
    {
        int after = columns[edge];
        if (leader[after] != home) leaves = true;
        else if (after != state) stays = true;
    }
    __device__ void end(int whose)
    {
        if (!leaves) return;
        if (whose == row) own_leaves = true;
        else if (!has(barred, whose)) put(barred, whose);
        // A component of one state is not looked at again, nor one that does without the row since
        // no edge of it leads to another of its states.
        if (!stays || alone && has(alone, state)) return;
        if (!has(changed, home)) put(changed, home);
    }
};

// Bars the rows that are empty or, if `columns` are given, may leave their component. One thread a
// row.
extern "C" __global__ void bar_leaving(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, int rows,
    const int* __restrict__ state_of, const unsigned* __restrict__ among,
    const int* __restrict__ leader, const unsigned* __restrict__ alone, unsigned* barred,
    unsigned* changed)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    bool asked = row < rows && !has(barred, row) && has(among, state_of[row]);
    bool empty = asked && offsets[row] == offsets[row + 1];
    LeavingRows walk{offsets, columns, leader, state_of, alone, barred, changed, row};
    walk.own_leaves = false;
    if (columns) walk_edges(Edges{offsets, nullptr}, asked && !empty ? row : -1, walk);
    unsigned left = __ballot_sync(ALL_LANES, empty || walk.own_leaves);
    if (left && threadIdx.x % 32 == 0) atomicOr(&barred[row / 32], left);
}

// Counts what each state has left, removes those that have nothing, and begins a list with the edges
// that enter them: none of those of a state alone, since rows of others that enter it leave their
// component. One thread a state.
extern "C" __global__ void collect_stuck(
    const int* __restrict__ groups, const OFFSET* __restrict__ offsets,
    const unsigned* __restrict__ among, const unsigned* __restrict__ alone,
    const unsigned* __restrict__ barred, int states, int* usable, unsigned* kept, Item* list,
    Counter* progress)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x, left = 0;
    bool asked = state < states && has(among, state);
    if (asked) {
        for (int row = groups[state]; row < groups[state + 1]; row++) left += !has(barred, row);
        usable[state] = left;
    }
    bool stuck = asked && left == 0;
    unsigned removed = __ballot_sync(ALL_LANES, stuck);
    if (removed && threadIdx.x % 32 == 0) kept[state / 32] &= ~removed;
    bool listed = stuck && !(alone && has(alone, state));
    begin_list(Edges{offsets, nullptr}, listed ? state : -1, list, progress);
}

// A round of the removals: rows that enter removed states are barred.
extern "C" __global__ void LISTED close_stuck(
    const OFFSET* __restrict__ offsets, const int* __restrict__ rows,
    const int* __restrict__ state_of, const int* __restrict__ leader, unsigned* barred,
    int* usable, unsigned* changed, unsigned* kept, Item* list, Counter* progress, int most)
{
    Edges edges{offsets, nullptr};
    expand(edges, list, progress, most, [&](OFFSET edge) {
        int row = rows[edge];
        int state = state_of[row];
        if (!has(kept, state) || has(barred, row) || !put(barred, row)) return nobody();
        return join(edges, state, [&] {
            if (!has(changed, leader[state])) put(changed, leader[state]);
            if (atomicSub(&usable[state], 1) > 1) return false;
            take(kept, state);
            return true;
        });
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
    unsigned dropped = __ballot_sync(ALL_LANES, row < rows && !has(kept, state_of[row]));
    if (dropped && threadIdx.x % 32 == 0) barred[row / 32] |= dropped;
}

// Leaves the states that are not kept without a component. One thread a state.
extern "C" __global__ void drop_leaders(
    const unsigned* __restrict__ kept, int states, int* leader)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states && !has(kept, state)) leader[state] = -1;
}
