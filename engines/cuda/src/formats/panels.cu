// Panels of states: what a block reads of x lies in its shared memory, where a look-up takes a few
// cycles wherever it goes. For long rows, whose look-ups cost far more than their entries' bytes.
//
// The entries of a row in a panel are an integral number of octets, eight places each, padded with
// look-ups of a zero; 32 octets are a tile, which a warp sums at a time, a lane an octet. Tiles
// belong to one panel. Where a row's octets or a tile begin, a bit is set and a sum is written.

#ifndef REAL
#define REAL double
#endif

#define OCTET 8
#define MOST_PANELS 64
#define PANEL_THREADS 1024

// Where x at a panel's state lies in shared memory: states that differ in whichever few bits spread
// over its 16 banks of doubles.
__device__ int swizzled(int state)
{
    return state ^ ((state >> 4 ^ state >> 8 ^ state >> 12) & 15);
}

// The place of a value: lanes next to one another read what lies together, two places at a time.
__device__ size_t value_place(size_t octet, int place)
{
    return octet / 32 * 32 * OCTET + place / 2 * 64 + octet % 32 * 2 + place % 2;
}

__device__ size_t warp_number() { return ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; }

// How many octets each row has in each panel. A warp a row, 8 warps a block.
extern "C" __global__ void count_panels(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, int rows, int width,
    int panels, OFFSET* octets)
{
    __shared__ int of_warp[8][MOST_PANELS];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    size_t row = warp_number();
    for (int panel = lane; panel < panels; panel += 32) of_warp[warp][panel] = 0;
    __syncwarp();
    if (row < rows)
        for (OFFSET entry = offsets[row] + lane; entry < offsets[row + 1]; entry += 32)
            atomicAdd(&of_warp[warp][columns[entry] / width], 1);
    __syncwarp();
    if (row < rows)
        for (int panel = lane; panel < panels; panel += 32)
            octets[(size_t)panel * rows + row] = (of_warp[warp][panel] + OCTET - 1) / OCTET;
}

// Look-ups of the zero behind each panel, in all places.
extern "C" __global__ void clear_panels(unsigned short* columns, unsigned short pad, OFFSET places)
{
    OFFSET place = thread_number();
    if (place < places) columns[place] = pad;
}

// The entries in their places, a warp a row: the e-th of a row's entries in a panel goes to octet e
// modulo its octets there, so that lanes look up what is near. `shifts` leads from the octets that
// `starts` counts to those of whole tiles. Values go to `codes` by the table, or to `numbers`.
extern "C" __global__ void fill_panels(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ divisors, int rows, int width,
    int panels, const OFFSET* __restrict__ starts, const OFFSET* __restrict__ shifts,
    unsigned short* placed, Key* keys, const int* __restrict__ codes_of_slots, unsigned mask,
    unsigned hash_mask, unsigned char* codes, REAL* numbers)
{
    size_t row = warp_number();
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    OFFSET begin = offsets[row], end = offsets[row + 1];
    for (int panel = 0; panel < panels; panel++) {
        const OFFSET* start = starts + (size_t)panel * rows + row;
        int octets = (int)(start[1] - start[0]);
        if (octets == 0) continue;
        size_t first = start[0] + shifts[panel];
        int before = 0;
        for (OFFSET chunk = begin; chunk < end; chunk += 32) {
            OFFSET entry = chunk + lane;
            int column = entry < end ? columns[entry] : -1;
            bool here = column >= 0 && column / width == panel;
            unsigned all = __ballot_sync(0xffffffff, here);
            if (here) {
                int number = before + __popc(all & ((1u << lane) - 1));
                size_t octet = first + number % octets;
                int place = number / octets;
                placed[octet * OCTET + place] = (unsigned short)swizzled(column % width);
                double value = value_at(values, divisors, row, entry);
                if (codes) {
                    unsigned slot = slot_of(Table{keys, mask, hash_mask}, bits_of(value));
                    codes[octet * OCTET + place] = (unsigned char)codes_of_slots[slot];
                } else {
                    numbers[value_place(octet, place)] = (REAL)value;
                }
            }
            before += __popc(all);
        }
    }
}

// Sets the bit of the octet that each row begins with in each panel.
extern "C" __global__ void flag_panels(
    const OFFSET* __restrict__ starts, const OFFSET* __restrict__ shifts, int rows, int panels,
    unsigned* heads)
{
    OFFSET i = thread_number();
    if (i >= (OFFSET)rows * panels || starts[i] == starts[i + 1]) return;
    OFFSET octet = starts[i] + shifts[i / rows];
    atomicOr(&heads[octet / 32], 1u << octet % 32);
}

// How many sums each tile has.
extern "C" __global__ void count_panel_sums(unsigned* heads, int tiles, OFFSET* counts)
{
    int tile = blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= tiles) return;
    heads[tile] |= 1u;
    counts[tile] = __popc(heads[tile]);
}

// Where the sums of each row begin in each panel, and where all end.
extern "C" __global__ void begin_panel_sums(
    const OFFSET* __restrict__ starts, const OFFSET* __restrict__ shifts, int rows, int panels,
    const unsigned* __restrict__ heads, const OFFSET* __restrict__ tile_sums, int tiles,
    OFFSET* begins)
{
    OFFSET i = thread_number();
    if (i > (OFFSET)rows * panels) return;
    OFFSET octet = i < (OFFSET)rows * panels ? starts[i] + shifts[i / rows] : (OFFSET)tiles * 32;
    OFFSET tile = octet / 32;
    unsigned below = octet % 32 ? heads[tile] & ((1u << octet % 32) - 1) : 0u;
    begins[i] = tile_sums[tile] + __popc(below);
}

// The values of an octet: codes of a dictionary in shared memory, or numbers.
struct Codes {
    uint2 codes;

    __device__ REAL at(int place, const REAL* dictionary) const
    {
        unsigned four = place < 4 ? codes.x : codes.y;
        return dictionary[four >> place % 4 * 8 & 0xff];
    }
};

struct Numbers {
    REAL numbers[OCTET];

    __device__ REAL at(int place, const REAL*) const { return numbers[place]; }
};

__device__ void fetch(Codes& values, const void* all, size_t octet)
{
    values.codes = __ldg((const uint2*)all + octet);
}

__device__ void fetch(Numbers& values, const void* all, size_t octet)
{
#pragma unroll
    for (int place = 0; place < OCTET; place++)
        values.numbers[place] = __ldg((const REAL*)all + value_place(octet, place));
}

template <class Values>
struct Tile {
    uint4 columns;
    Values values;
    unsigned heads;
    OFFSET first_sum;
};

struct Panels {
    const uint4* columns;
    const void* values;
    const unsigned* heads;
    const OFFSET* tile_sums;
};

template <class Values>
__device__ Tile<Values> fetched(const Panels& panels, int tile)
{
    size_t octet = (size_t)tile * 32 + threadIdx.x % 32;
    Tile<Values> there;
    there.columns = __ldg(panels.columns + octet);
    fetch(there.values, panels.values, octet);
    there.heads = __ldg(panels.heads + tile);
    there.first_sum = __ldg(panels.tile_sums + tile);
    return there;
}

// The sum of an octet's products.
template <class Values>
__device__ REAL octet_sum(const Tile<Values>& tile, const REAL* x, const REAL* dictionary)
{
    unsigned columns[4] = {tile.columns.x, tile.columns.y, tile.columns.z, tile.columns.w};
    REAL read[OCTET], sum = 0;
#pragma unroll
    for (int place = 0; place < OCTET; place++)
        read[place] = x[columns[place / 2] >> place % 2 * 16 & 0xffff];
#pragma unroll
    for (int place = 0; place < OCTET; place++)
        sum += tile.values.at(place, dictionary) * read[place];
    return sum;
}

// A tile's sums, added up over lanes from each head to the next.
template <class Values>
__device__ void sum_tile(const Tile<Values>& tile, const REAL* x, const REAL* dictionary,
                         REAL* sums)
{
    int lane = threadIdx.x % 32;
    REAL sum = octet_sum(tile, x, dictionary);
    unsigned later = lane == 31 ? 0u : tile.heads & (0xffffffffu << (lane + 1));
    int end = later ? __ffs(later) - 1 : 32;
#pragma unroll
    for (int reach = 1; reach < 32; reach *= 2) {
        REAL other = __shfl_down_sync(0xffffffff, sum, reach);
        if (lane + reach < end) sum += other;
    }
    if (tile.heads >> lane & 1u)
        sums[tile.first_sum + __popc(tile.heads & ((1u << lane) - 1))] = sum;
}

// The sums of a block's part of a panel: its number, its first tile and the one behind its last.
template <class Values>
__device__ void sum_part(const Panels& panels, const REAL* numbers, int num_numbers, int4 part,
                         int width, int states, const REAL* x, REAL* sums, REAL* shared)
{
    int warps = blockDim.x / 32, number = part.y + threadIdx.x / 32;
    Tile<Values> ahead;
    // What the matrix has to say is under way while x is copied.
    if (number < part.z) ahead = fetched<Values>(panels, number);
    REAL* dictionary = shared + width + 2;
    int first = part.x * width, there = min(width, states - first);
#pragma unroll 8
    for (int state = threadIdx.x; state < width; state += blockDim.x)
        shared[swizzled(state)] = state < there ? x[first + state] : (REAL)0;
    if (threadIdx.x == 0) shared[width] = 0;
    for (int i = threadIdx.x; i < num_numbers; i += blockDim.x) dictionary[i] = numbers[i];
    __syncthreads();
    while (number < part.z) {
        Tile<Values> tile = ahead;
        number += warps;
        if (number < part.z) ahead = fetched<Values>(panels, number);
        sum_tile(tile, shared, dictionary, sums);
    }
}

extern __shared__ double shared_of_panels[];

// The sums of all panels, by as many blocks as there are parts; values by codes of a byte.
extern "C" __global__ void __launch_bounds__(PANEL_THREADS, 1) sum_coded_panels(
    const uint4* __restrict__ columns, const void* __restrict__ values,
    const unsigned* __restrict__ heads, const OFFSET* __restrict__ tile_sums,
    const REAL* __restrict__ numbers, int num_numbers, const int4* __restrict__ parts, int width,
    int states, const REAL* __restrict__ x, const double* before_slot, double stop_below,
    REAL* sums)
{
    if (*before_slot < stop_below) return;
    sum_part<Codes>(Panels{columns, values, heads, tile_sums}, numbers, num_numbers,
                    parts[blockIdx.x], width, states, x, sums, (REAL*)shared_of_panels);
}

// The same with values as they are.
extern "C" __global__ void __launch_bounds__(PANEL_THREADS, 1) sum_plain_panels(
    const uint4* __restrict__ columns, const void* __restrict__ values,
    const unsigned* __restrict__ heads, const OFFSET* __restrict__ tile_sums,
    const REAL* __restrict__ numbers, int num_numbers, const int4* __restrict__ parts, int width,
    int states, const REAL* __restrict__ x, const double* before_slot, double stop_below,
    REAL* sums)
{
    if (*before_slot < stop_below) return;
    sum_part<Numbers>(Panels{columns, values, heads, tile_sums}, numbers, num_numbers,
                      parts[blockIdx.x], width, states, x, sums, (REAL*)shared_of_panels);
}
