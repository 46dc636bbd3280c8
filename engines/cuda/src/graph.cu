// Closures of sets of states in a model's graph, by worklists.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.

// A mask, or what it leaves out, as a set. One thread a member.
extern "C" __global__ void pack_members(
    const unsigned char* __restrict__ mask, int members, int complement, unsigned* set)
{
    int member = blockIdx.x * blockDim.x + threadIdx.x;
    bool there = member < members && (mask[member] != 0) != complement;
    unsigned word = __ballot_sync(ALL_LANES, there);
    if (member < members && member % 32 == 0) set[member / 32] = word;
}

// A set, or what it leaves out, as a mask. One thread a member.
extern "C" __global__ void unpack_members(
    const unsigned* __restrict__ set, int members, int complement, unsigned char* mask)
{
    int member = blockIdx.x * blockDim.x + threadIdx.x;
    if (member < members) mask[member] = has(set, member) != complement;
}

// The first round of the first or the second of two lists: the edges of each state of a set. One
// thread a state.
extern "C" __global__ void collect_states(
    const unsigned* __restrict__ set, int states, const OFFSET* __restrict__ offsets,
    const int* __restrict__ groups, int second, Item* items, Counter size, Counter* progress)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    bool listed = state < states && has(set, state);
    List list = one_of_two(second, items, size, progress, blockIdx.x, gridDim.x);
    begin_list(Edges{offsets, groups}, listed ? state : -1, list);
}

// As of `close_some`.
__device__ void close_over(
    const Edges& edges, const int* ends, const int* state_of, const unsigned* cut,
    const unsigned* barred, unsigned* open, const List& list, int most)
{
    expand(edges, list, most, [&](OFFSET edge) {
        int row = ends[edge];
        if (is_cut(cut, edge) || barred && has(barred, row)) return nobody();
        int state = state_of ? state_of[row] : row;
        if (!has(open, state)) return nobody();
        return join(edges, state, [&] { return take(open, state); });
    });
}

// A round of the closure of a set under its states' edges: `ends` holds states, or rows of which
// `state_of` knows the states. Those in `open` may join, and leave `open`. Edges in `cut` and rows in
// `barred` do not count; either may be null.
extern "C" __global__ void LISTED close_some(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ ends, const int* __restrict__ state_of,
    const unsigned* __restrict__ cut, const unsigned* __restrict__ barred, unsigned* open,
    Item* list, Counter* progress, int most)
{
    close_over(
        Edges{offsets, groups}, ends, state_of, cut, barred, open, only_list(list, progress), most);
}

// A round of two such closures: half of the blocks for the one of edges forwards, the others for that
// of edges backwards.
extern "C" __global__ void LISTED close_both(
    const OFFSET* __restrict__ offsets, const int* __restrict__ groups,
    const int* __restrict__ columns, const unsigned* __restrict__ cut,
    const OFFSET* __restrict__ offsets_behind, const int* __restrict__ rows,
    const int* __restrict__ state_of, const unsigned* __restrict__ cut_behind,
    const unsigned* __restrict__ barred, unsigned* open, unsigned* open_behind, Item* items,
    Counter size, Counter* progress, int most)
{
    int blocks = gridDim.x / 2, block = blockIdx.x % blocks;
    bool backwards = blockIdx.x >= blocks;
    List list = one_of_two(backwards, items, size, progress, block, blocks);
    Edges ahead{offsets, groups}, behind{offsets_behind, nullptr};
    if (backwards)
        close_over(behind, rows, state_of, cut_behind, barred, open_behind, list, most);
    else
        close_over(ahead, columns, nullptr, cut, nullptr, open, list, most);
}

// A round of the closure of a set by the states whose rows all enter it. `entered` starts empty,
// `missing` with the number of each state's rows.
extern "C" __global__ void LISTED close_all(
    const OFFSET* __restrict__ offsets, const int* __restrict__ rows,
    const int* __restrict__ state_of, unsigned* entered, int* missing, unsigned* open, Item* list,
    Counter* progress, int most)
{
    Edges edges{offsets, nullptr};
    expand(edges, list, progress, most, [&](OFFSET edge) {
        int row = rows[edge];
        int state = state_of[row];
        if (!has(open, state) || !put(entered, row)) return nobody();
        return join(edges, state, [&] {
            if (atomicSub(&missing[state], 1) > 1) return false;
            take(open, state);
            return true;
        });
    });
}

// Bars each row that enters one of the states whose incoming edges are listed.
extern "C" __global__ void LISTED bar_rows(
    const OFFSET* __restrict__ offsets, const int* __restrict__ rows, unsigned* barred, Item* list,
    Counter* progress, int most)
{
    expand(Edges{offsets, nullptr}, list, progress, most, [&](OFFSET edge) {
        if (!has(barred, rows[edge])) put(barred, rows[edge]);
        return nobody();
    });
}

// Takes a set's members out of another. One thread a word.
extern "C" __global__ void drop_members(
    unsigned* __restrict__ set, const unsigned* __restrict__ members, int words)
{
    int word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word < words) set[word] &= ~members[word];
}

// Makes of what is left of an open set the whole closure: where it began, and what has joined it. One
// thread a word.
extern "C" __global__ void join_members(
    const unsigned* __restrict__ start, const unsigned* __restrict__ open,
    unsigned* __restrict__ left, int words)
{
    int word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word < words) left[word] = start[word] | open[word] & ~left[word];
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
