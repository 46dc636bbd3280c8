// Colours of Gauss-Seidel: levels, what is fresh, moves to better colours.
//
// Compiled with OFFSET the type of the row offsets, int or long long, and UNSIGNED_OFFSET its
// unsigned twin.
//
// An update is a state that a sweep computes, by its number among them. The entries of update u are
// `offsets[u]` to `offsets[u + 1]` - 1, and `reads` holds the update that each reads, or -1. A warp
// takes an update. Weights are whole numbers, so that sums do not depend on the order of threads.

typedef unsigned long long Sum;
typedef long long Weight;

__device__ long long warp_number()
{
    return ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
}

__device__ Weight sum_of_warp(Weight value)
{
    for (int other = 16; other > 0; other /= 2)
        value += __shfl_down_sync(0xffffffff, value, other);
    return value;
}

// An entry's weight, given its row's factor; the product is rounded to the nearest whole number.
__device__ Weight weight_of(double value, double factor) { return (Weight)rint(value * factor); }

// Adds up what the threads of a block have counted; all its threads take part.
__device__ void add_up(const Weight* counted, int numbers, Weight* sums)
{
    __shared__ Weight of_warp[32];
    for (int number = 0; number < numbers; number++) {
        Weight sum = sum_of_warp(counted[number]);
        if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int warp = 1; warp < (blockDim.x + 31) / 32; warp++) sum += of_warp[warp];
            if (sum != 0) atomicAdd((Sum*)&sums[number], (Sum)sum);
        }
        __syncthreads();
    }
}

// Where the entries of each group of rows begin, and where the last end.
extern "C" __global__ void find_group_entries(
    const OFFSET* __restrict__ offsets, const OFFSET* __restrict__ groups, int count,
    OFFSET* of_groups)
{
    int group = blockIdx.x * blockDim.x + threadIdx.x;
    if (group <= count) of_groups[group] = offsets[groups[group]];
}

// Which update computes each state; -1 before.
extern "C" __global__ void name_updates(const int* __restrict__ states, int updates, int* update_of)
{
    int update = blockIdx.x * blockDim.x + threadIdx.x;
    if (update < updates) update_of[states ? states[update] : update] = update;
}

// The update that each entry reads.
extern "C" __global__ void name_reads(
    const int* __restrict__ columns, long long entries, const int* __restrict__ update_of,
    int* reads)
{
    long long entry = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (entry < entries) reads[entry] = update_of[columns[entry]];
}

// What an update's values are multiplied by to be weights. One thread an update: the sum is in the
// order of its entries.
extern "C" __global__ void measure_weights(
    const OFFSET* __restrict__ offsets, const double* __restrict__ values, int updates,
    double unit, double* factors)
{
    int update = blockIdx.x * blockDim.x + threadIdx.x;
    if (update >= updates) return;
    OFFSET end = offsets[update + 1];
    double total = 0.0;
    for (OFFSET entry = offsets[update]; entry < end; entry++) total += values[entry];
    factors[update] = total > 0.0 ? unit / total : 0.0;
}

// Raises levels, in any order of updates, until they are those of the sequential sweep: an update
// comes after those before it that it reads, and not before those before it that read it. Nothing
// is done where the round before, whose flag is `before`, has raised none. So many threads take an
// update as `threads` says, a power of two up to 32: the rounds are many, and most rows short.
extern "C" __global__ void raise_levels(
    const OFFSET* __restrict__ offsets, const int* __restrict__ reads, int updates, int threads,
    int backwards, int* levels, const int* before, int* raised)
{
    if (*before == 0) return;
    long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long place = thread / threads;
    int lane = threadIdx.x % threads, update = -1, old = 0;
    OFFSET begin = 0, end = 0;
    volatile int* present = levels;
    if (place < updates) {
        update = backwards ? updates - 1 - (int)place : (int)place;
        begin = offsets[update];
        end = offsets[update + 1];
        old = present[update];
    }
    int level = old;
    for (OFFSET entry = begin + lane; entry < end; entry += threads) {
        int other = reads[entry];
        if (other < 0 || other == update || (other > update) != (backwards != 0)) continue;
        int least = present[other] + 1;
        if (least > level) level = least;
    }
    for (int reach = threads / 2; reach > 0; reach /= 2) {
        int other = __shfl_down_sync(0xffffffff, level, reach, threads);
        if (other > level) level = other;
    }
    level = __shfl_sync(0xffffffff, level, 0, threads);
    bool changed = level > old;
    if (changed && lane == 0) atomicMax(&levels[update], level);
    for (OFFSET entry = begin + lane; entry < end; entry += threads) {
        int other = reads[entry];
        if (other < 0 || other == update || (other > update) == (backwards != 0)) continue;
        if (present[other] < level) {
            atomicMax(&levels[other], level);
            changed = true;
        }
    }
    if (changed) *raised = 1;
}

// The highest level, and how many entries an iteration matrix has: those of its own state do not
// count where it has no diagonal. Both start at 0.
extern "C" __global__ void measure_levels(
    const OFFSET* __restrict__ offsets, const int* __restrict__ reads, int updates,
    int without_diagonal, const int* __restrict__ levels, int* highest, Weight* entries)
{
    long long warps = (long long)gridDim.x * blockDim.x / 32;
    int lane = threadIdx.x % 32, most = 0;
    Weight counted = 0;
    for (long long update = warp_number(); update < updates; update += warps) {
        if (levels[update] > most) most = levels[update];
        OFFSET end = offsets[update + 1];
        for (OFFSET entry = offsets[update] + lane; entry < end; entry += 32)
            counted += !without_diagonal || reads[entry] != update;
    }
    if (lane == 0 && most > *(volatile int*)highest) atomicMax(highest, most);
    add_up(&counted, 1, entries);
}

// The weight that is fresh if a state's colour is its level modulo each of up to four numbers, and
// last all weight between updates.
extern "C" __global__ void sum_fresh_weights(
    const OFFSET* __restrict__ offsets, const int* __restrict__ reads,
    const double* __restrict__ values, const double* __restrict__ factors, int updates,
    const int* __restrict__ levels, int count_1, int count_2, int count_3, int count_4, int tried,
    Weight* sums)
{
    long long warps = (long long)gridDim.x * blockDim.x / 32;
    int lane = threadIdx.x % 32;
    Weight counted[5] = {0, 0, 0, 0, 0};
    const int numbers[4] = {count_1, count_2, count_3, count_4};
    for (long long update = warp_number(); update < updates; update += warps) {
        int level = levels[update];
        double factor = factors[update];
        OFFSET end = offsets[update + 1];
        for (OFFSET entry = offsets[update] + lane; entry < end; entry += 32) {
            int other = reads[entry];
            if (other < 0 || other == update) continue;
            Weight weight = weight_of(values[entry], factor);
            int level_read = levels[other];
            counted[4] += weight;
            for (int which = 0; which < 4; which++)
                if (which < tried && level_read % numbers[which] < level % numbers[which])
                    counted[which] += weight;
        }
    }
    add_up(counted, 5, sums);
}

// How many entries between updates see fresh values, and how many there are.
extern "C" __global__ void count_fresh_entries(
    const OFFSET* __restrict__ offsets, const int* __restrict__ reads, int updates,
    const int* __restrict__ colours, Weight* sums)
{
    long long warps = (long long)gridDim.x * blockDim.x / 32;
    int lane = threadIdx.x % 32;
    Weight counted[2] = {0, 0};
    for (long long update = warp_number(); update < updates; update += warps) {
        int colour = colours[update];
        OFFSET end = offsets[update + 1];
        for (OFFSET entry = offsets[update] + lane; entry < end; entry += 32) {
            int other = reads[entry];
            if (other < 0 || other == update) continue;
            counted[1]++;
            counted[0] += colours[other] < colour;
        }
    }
    add_up(counted, 2, sums);
}

// How many entries read a state with a lower number than the one that is computed, and a higher,
// of those states that are computed at all.
extern "C" __global__ void count_directions(
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns,
    const int* __restrict__ states, const int* __restrict__ update_of, int rows, Weight* sums)
{
    long long warps = (long long)gridDim.x * blockDim.x / 32;
    int lane = threadIdx.x % 32;
    Weight counted[2] = {0, 0};
    for (long long row = warp_number(); row < rows; row += warps) {
        int state = states ? states[row] : (int)row;
        OFFSET end = offsets[row + 1];
        for (OFFSET entry = offsets[row] + lane; entry < end; entry += 32) {
            int column = columns[entry];
            if (update_of && update_of[column] < 0) continue;
            counted[0] += column < state;
            counted[1] += column > state;
        }
    }
    add_up(counted, 2, sums);
}

// Colours of slices by their number; backwards, they are counted from the last one.
extern "C" __global__ void colour_by_congruence(
    int updates, int slice_size, int count, int backwards, int* colours)
{
    int update = blockIdx.x * blockDim.x + threadIdx.x;
    if (update >= updates) return;
    int slice = update / slice_size;
    if (backwards) slice = (updates - 1) / slice_size - slice;
    colours[update] = slice % count;
}

// Colours by levels.
extern "C" __global__ void colour_by_level(
    const int* __restrict__ levels, int updates, int count, int* colours)
{
    int update = blockIdx.x * blockDim.x + threadIdx.x;
    if (update < updates) colours[update] = levels[update] % count;
}

// How many others read each update.
extern "C" __global__ void count_readers(
    const OFFSET* __restrict__ offsets, const int* __restrict__ reads, int updates, OFFSET* counts)
{
    long long update = warp_number();
    if (update >= updates) return;
    OFFSET end = offsets[update + 1];
    for (OFFSET entry = offsets[update] + threadIdx.x % 32; entry < end; entry += 32) {
        int other = reads[entry];
        if (other >= 0 && other != update)
            atomicAdd((UNSIGNED_OFFSET*)&counts[other], (UNSIGNED_OFFSET)1);
    }
}

// Who reads each update, and by what weight, in any order; filled from each update's end.
extern "C" __global__ void scatter_readers(
    const OFFSET* __restrict__ offsets, const int* __restrict__ reads,
    const double* __restrict__ values, const double* __restrict__ factors, int updates,
    OFFSET* cursors, int* readers, int* weights)
{
    long long update = warp_number();
    if (update >= updates) return;
    double factor = factors[update];
    OFFSET end = offsets[update + 1];
    for (OFFSET entry = offsets[update] + threadIdx.x % 32; entry < end; entry += 32) {
        int other = reads[entry];
        if (other < 0 || other == update) continue;
        OFFSET place = atomicAdd((UNSIGNED_OFFSET*)&cursors[other], (UNSIGNED_OFFSET)-1) - 1;
        readers[place] = (int)update;
        weights[place] = (int)weight_of(values[entry], factor);
    }
}

// The step of a pass in which each update may move.
extern "C" __global__ void name_steps(
    const int* __restrict__ levels, int updates, int bands, int depth, int classes,
    unsigned long long multiplier, int shift, int* steps)
{
    int update = blockIdx.x * blockDim.x + threadIdx.x;
    if (update >= updates) return;
    unsigned long long hash = (unsigned long long)update * multiplier >> shift;
    int band = (int)((long long)levels[update] * bands / depth);
    steps[update] = band * classes + (int)(hash % classes);
}

// The colour in which most weight of an update's entries and readers is fresh, the lowest of equal
// ones, and what it gains. A warp an update of the step; its shared memory holds `count` weights:
// their sums up to colour q are what is fresh in colour q. An update of whose neighbours none has
// moved since its last look is not awake, and gains nothing.
extern "C" __global__ void find_better_colours(
    const OFFSET* __restrict__ offsets, const int* __restrict__ reads,
    const double* __restrict__ values, const double* __restrict__ factors,
    const OFFSET* __restrict__ reader_offsets, const int* __restrict__ readers,
    const int* __restrict__ reader_weights, const int* __restrict__ members, int first, int last,
    const int* __restrict__ colours, int count, unsigned char* awake, int* wanted, Weight* gains)
{
    extern __shared__ Weight steps_of_block[];
    long long place = first + warp_number();
    if (place >= last) return;
    int lane = threadIdx.x % 32, update = members[place];
    if (!awake[update]) {
        if (lane == 0) gains[update] = 0;
        return;
    }
    double factor = factors[update];
    int own = colours[update];
    OFFSET begin = offsets[update], end = offsets[update + 1];
    OFFSET first_reader = reader_offsets[update], last_reader = reader_offsets[update + 1];
    bool stale = false;
    for (OFFSET entry = begin + lane; entry < end && !stale; entry += 32) {
        int other = reads[entry];
        stale = other >= 0 && other != update && colours[other] >= own && values[entry] > 0.0;
    }
    for (OFFSET entry = first_reader + lane; entry < last_reader && !stale; entry += 32)
        stale = colours[readers[entry]] <= own && reader_weights[entry] > 0;
    // Where all is fresh there is nothing to gain, as in most rows of a model that goes by its levels.
    if (!__any_sync(0xffffffff, stale)) {
        if (lane == 0) {
            awake[update] = 0;
            gains[update] = 0;
        }
        return;
    }
    Weight* steps = steps_of_block + threadIdx.x / 32 * count;
    for (int colour = lane; colour < count; colour += 32) steps[colour] = 0;
    __syncwarp();
    for (OFFSET entry = begin + lane; entry < end; entry += 32) {
        int other = reads[entry];
        if (other < 0 || other == update) continue;
        int from = colours[other] + 1;
        if (from < count) atomicAdd((Sum*)&steps[from], (Sum)weight_of(values[entry], factor));
    }
    Weight read = 0;
    for (OFFSET entry = first_reader + lane; entry < last_reader; entry += 32) {
        Weight weight = reader_weights[entry];
        read += weight;
        atomicAdd((Sum*)&steps[colours[readers[entry]]], (Sum)-weight);
    }
    Weight fresh = __shfl_sync(0xffffffff, sum_of_warp(read), 0);
    __syncwarp();
    int best_colour = 0;
    Weight best = -1, present = 0;
    for (int from = 0; from < count; from += 32) {
        int colour = from + lane;
        Weight sum = colour < count ? steps[colour] : 0;
        for (int reach = 1; reach < 32; reach *= 2) {
            Weight before = __shfl_up_sync(0xffffffff, sum, reach);
            if (lane >= reach) sum += before;
        }
        sum += fresh;
        if (colour == own) present = sum;
        if (colour < count && sum > best) {
            best = sum;
            best_colour = colour;
        }
        fresh = __shfl_sync(0xffffffff, sum, 31);
    }
    present = __shfl_sync(0xffffffff, present, own % 32);
    for (int reach = 16; reach > 0; reach /= 2) {
        Weight other = __shfl_down_sync(0xffffffff, best, reach);
        int other_colour = __shfl_down_sync(0xffffffff, best_colour, reach);
        if (other > best || (other == best && other_colour < best_colour)) {
            best = other;
            best_colour = other_colour;
        }
    }
    if (lane == 0) {
        awake[update] = 0;
        wanted[update] = best_colour;
        gains[update] = best - present;
    }
}

// Moves the updates of a step that gain and have no neighbour in it that comes before them, and wakes
// the neighbours of those that move.
extern "C" __global__ void settle_moves(
    const OFFSET* __restrict__ offsets, const int* __restrict__ reads,
    const OFFSET* __restrict__ reader_offsets, const int* __restrict__ readers,
    const int* __restrict__ members, int first, int last, const int* __restrict__ steps,
    const int* __restrict__ wanted, const Weight* __restrict__ gains, unsigned char* awake,
    int* colours)
{
    long long place = first + warp_number();
    if (place >= last) return;
    int lane = threadIdx.x % 32, update = members[place], step = steps[update];
    Weight gain = gains[update];
    if (gain <= 0) return;
    auto comes_first = [&](int other) {
        if (other < 0 || steps[other] != step) return false;
        return gains[other] > gain || (gains[other] == gain && other < update);
    };
    bool stays = false;
    OFFSET begin = offsets[update], end = offsets[update + 1];
    OFFSET first_reader = reader_offsets[update], last_reader = reader_offsets[update + 1];
    for (OFFSET entry = begin + lane; entry < end && !stays; entry += 32)
        stays = comes_first(reads[entry]);
    for (OFFSET entry = first_reader + lane; entry < last_reader && !stays; entry += 32)
        stays = comes_first(readers[entry]);
    if (__any_sync(0xffffffff, stays)) {
        if (lane == 0) awake[update] = 1;
        return;
    }
    if (lane == 0) colours[update] = wanted[update];
    for (OFFSET entry = begin + lane; entry < end; entry += 32)
        if (reads[entry] >= 0) awake[reads[entry]] = 1;
    for (OFFSET entry = first_reader + lane; entry < last_reader; entry += 32)
        awake[readers[entry]] = 1;
}
