// Things in the order of small keys, those of one key in the order of their numbers.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin. A block takes 1024 things, one a thread.

#define THINGS 1024

// How many things of the block with this thread's key come before it, and whether it is the last.
__device__ int rank_in_block(int key, bool* is_last)
{
    __shared__ int keys[THINGS];
    keys[threadIdx.x] = key;
    __syncthreads();
    int rank = 0;
    for (int other = 0; other < threadIdx.x; other++) rank += keys[other] == key;
    bool last = true;
    for (int other = threadIdx.x + 1; last && other < THINGS; other++) last = keys[other] != key;
    *is_last = last;
    return rank;
}

// How often each block has each key, all blocks of one key after each other; zeros before.
extern "C" __global__ void count_keys(
    const int* __restrict__ keys, int things, int blocks, OFFSET* counts)
{
    int thing = blockIdx.x * THINGS + threadIdx.x;
    int key = thing < things ? keys[thing] : -1;
    bool last;
    int rank = rank_in_block(key, &last);
    if (key >= 0 && last) counts[(long long)key * blocks + blockIdx.x] = rank + 1;
}

// Puts each thing's number in its place; `ends` are the inclusive sums of the counts.
extern "C" __global__ void scatter_by_key(
    const int* __restrict__ keys, int things, int blocks, const OFFSET* __restrict__ ends,
    int* sorted)
{
    int thing = blockIdx.x * THINGS + threadIdx.x;
    int key = thing < things ? keys[thing] : -1;
    bool last;
    int rank = rank_in_block(key, &last);
    if (key < 0) return;
    long long cell = (long long)key * blocks + blockIdx.x;
    OFFSET before = cell > 0 ? ends[cell - 1] : 0;
    sorted[before + rank] = thing;
}

// Where the things of each key begin, and where the last end: `keys` + 1 numbers.
extern "C" __global__ void find_bounds(
    const OFFSET* __restrict__ ends, int blocks, int keys, int* bounds)
{
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    if (key > keys) return;
    bounds[key] = key > 0 ? (int)ends[(long long)key * blocks - 1] : 0;
}
