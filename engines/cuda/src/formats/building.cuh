// What the kernels that lay out a matrix share: how rows are sampled, and hash tables.
//
// Compiled with OFFSET the type of the row offsets, int or long long.

typedef unsigned long long Key;

#define EMPTY 0xffffffffffffffffULL

// Row number i of a sample of whole slices of 32 rows, each `stride` slices apart.
__device__ OFFSET sampled_row(OFFSET i, OFFSET stride) { return i / 32 * stride * 32 + i % 32; }

__device__ OFFSET thread_number() { return (OFFSET)blockIdx.x * blockDim.x + threadIdx.x; }

// An entry's value in the iteration matrix.
__device__ double value_at(const double* values, const double* divisors, OFFSET row, OFFSET entry)
{
    return divisors ? values[entry] / divisors[row] : values[entry];
}

__device__ Key bits_of(double value) { return (Key)__double_as_longlong(value); }

__device__ int state_of(const int* row_states, OFFSET row)
{
    return row_states ? row_states[row] : (int)row;
}

// The finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number
// generators, 2014). `hash_mask` is all ones but in tests that want collisions.
__device__ unsigned hashed(Key key, unsigned hash_mask)
{
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ULL;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebULL;
    return (unsigned)(key ^ (key >> 31)) & hash_mask;
}

struct Table {
    Key* keys;           // EMPTY where there is none
    unsigned mask;       // slots - 1, slots a power of two
    unsigned hash_mask;
};

// Puts a key into the table unless `count` keys, more than `limit`, are there already. The slots
// hold whole keys: a hit is a hit. Returns the key's slot, or -1.
__device__ int inserted(const Table& table, Key key, int* count, int limit)
{
    for (unsigned slot = hashed(key, table.hash_mask) & table.mask;; slot = (slot + 1) & table.mask) {
        Key found = table.keys[slot];
        if (found == key) return slot;
        if (*(volatile int*)count > limit) return -1;
        if (found != EMPTY) continue;
        found = atomicCAS(&table.keys[slot], EMPTY, key);
        if (found == EMPTY) atomicAdd(count, 1);
        if (found == EMPTY || found == key) return slot;
    }
}

// The slot of a key that is there. One that is not would be a mistake of ours, whose end is an error:
// there is always an empty slot to find.
__device__ unsigned slot_of(const Table& table, Key key)
{
    for (unsigned slot = hashed(key, table.hash_mask) & table.mask;; slot = (slot + 1) & table.mask) {
        Key found = table.keys[slot];
        if (found == key) return slot;
        if (found == EMPTY) __trap();
    }
}

__device__ void put_code(void* codes, int width, OFFSET at, int code)
{
    if (width == 1) ((unsigned char*)codes)[at] = (unsigned char)code;
    else if (width == 2) ((unsigned short*)codes)[at] = (unsigned short)code;
    else ((unsigned*)codes)[at] = (unsigned)code;
}
