// Multilevel aggregation for pi Q = 0: joining states, the flows between aggregates, the cycle.
//
// Each level is a chain in compressed rows by the state that flows lead to, without loops, and what
// leaves each state. The finest may have rows of few kinds in place of these: then `kinds` tells each
// state's, which row and what leaves belong to, and columns are counted from the state. Where
// `kinds` is null each row is of its own kind. Entries are numbered in 32 bits; OFFSET numbers those
// that the rows of several states would have. An aggregate has up to `width` members; -1 stands for
// none.

#define NO_SLOT 0xffff
#define SLOTS 32
#define READ_AT_ONCE 4
#define FLOW_THREADS 128
#define COARSEST 64
#define SUM_THREADS 256

__device__ int kind_of(const unsigned short* __restrict__ kinds, int state)
{
    return kinds ? kinds[state] : state;
}

// What the columns of a row are counted from.
__device__ int origin_of(const unsigned short* __restrict__ kinds, int state)
{
    return kinds ? state : 0;
}

// The sum over 2^lane_bits neighbouring threads.
__device__ double sum_of_lanes(double value, int lane_bits)
{
    for (int bit = 0; bit < lane_bits; bit++) value += __shfl_xor_sync(0xffffffff, value, 1 << bit);
    return value;
}

// A hash of 32 bits, because neighbours must fall on different sides in some round.
__device__ int colour(int state, int turn)
{
    unsigned bits = (unsigned)state * 2654435761u + (unsigned)turn * 2246822519u;
    bits ^= bits >> 15;
    bits *= 2246822519u;
    bits ^= bits >> 13;
    bits *= 3266489917u;
    return (bits >> 16) & 1;
}

// Before the first pass each state is an aggregate of its own; all are equally likely.
extern "C" __global__ void start_level(int* members, int* aggregate, double* shares, int states)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state >= states) return;
    members[state] = state;
    aggregate[state] = state;
    shares[state] = 1.0;
}

// Scales where the cycles start from, and keeps it above what a state must have.
extern "C" __global__ void start_iterate(double* x, int states, double scale, double floor)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state < states) x[state] = fmax(x[state] / scale, floor);
}

// One thread an aggregate. Those of one colour propose to their strongest neighbour of the other,
// which keeps the strongest proposal: strengths are positive, so their bit patterns are ordered.
extern "C" __global__ void propose_partner(
    const int* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ out,
    const unsigned short* __restrict__ kinds, const int* __restrict__ members, int width,
    const int* __restrict__ aggregate,
    const int* __restrict__ partner, int count, int turn, double enough,
    unsigned long long* proposals)
{
    int target = blockIdx.x * blockDim.x + threadIdx.x;
    if (target >= count || partner[target] >= 0 || colour(target, turn) == 1) return;
    float best = 0.0f, strongest = 0.0f;
    int chosen = -1;
    for (int place = 0; place < width; place++) {
        int row = members[(long long)target * width + place];
        if (row < 0) break;
        int kind = kind_of(kinds, row), origin = origin_of(kinds, row);
        for (int entry = offsets[kind]; entry < offsets[kind + 1]; entry++) {
            int column = origin + columns[entry];
            int source = aggregate[column];
            // How large a share it is of what leaves the one, and of what passes the other.
            double leaving = out[kind_of(kinds, column)];
            float strength = (float)(values[entry] / leaving + values[entry] / out[kind]);
            if (strength > strongest) strongest = strength;
            if (source != target && strength > best && partner[source] < 0 &&
                colour(source, turn) == 1) {
                best = strength;
                chosen = source;
            }
        }
    }
    // What is hardly tied must not be joined: no correction could move mass between the two.
    if (chosen >= 0 && (double)best >= enough * (double)strongest)
        atomicMax(&proposals[chosen], (unsigned long long)__float_as_uint(best) << 32 | target);
}

// One thread an aggregate; clears the proposals for the next round.
extern "C" __global__ void accept_partner(unsigned long long* proposals, int count, int* partner)
{
    int source = blockIdx.x * blockDim.x + threadIdx.x;
    if (source >= count || proposals[source] == 0) return;
    int target = (int)(proposals[source] & 0xffffffffu);
    proposals[source] = 0;
    partner[source] = target;
    partner[target] = source;
}

// Marks the first of each pair, and who is alone; the inclusive sums of the marks number them.
extern "C" __global__ void mark_first(const int* __restrict__ partner, int count, int* marks)
{
    int one = blockIdx.x * blockDim.x + threadIdx.x;
    if (one < count) marks[one] = partner[one] < 0 || partner[one] > one;
}

// Joins partners: the members of each new aggregate, twice as wide, and the aggregate of each state.
extern "C" __global__ void join_partners(
    const int* __restrict__ members, int width, const int* __restrict__ partner,
    const int* __restrict__ numbers, int count, int* joined, int* aggregate)
{
    int one = blockIdx.x * blockDim.x + threadIdx.x;
    if (one >= count) return;
    int other = partner[one];
    if (other >= 0 && other < one) return;
    int number = numbers[one] - 1, filled = 0;
    int* row = joined + (long long)number * 2 * width;
    for (int half = 0; half < 2; half++) {
        int source = half == 0 ? one : other;
        if (source < 0) break;
        for (int place = 0; place < width; place++) {
            int state = members[(long long)source * width + place];
            if (state < 0) break;
            row[filled++] = state;
            aggregate[state] = number;
        }
    }
    while (filled < 2 * width) row[filled++] = -1;
}

// Counts the entries that the rows of each aggregate have together; keeps the largest number.
extern "C" __global__ void measure_aggregates(
    const int* __restrict__ offsets, const unsigned short* __restrict__ kinds,
    const int* __restrict__ members, int width, int count, OFFSET* lengths, int* longest)
{
    int target = blockIdx.x * blockDim.x + threadIdx.x;
    if (target >= count) return;
    int length = 0;
    for (int place = 0; place < width; place++) {
        int row = members[(long long)target * width + place];
        if (row < 0) break;
        int kind = kind_of(kinds, row);
        length += offsets[kind + 1] - offsets[kind];
    }
    lengths[target] = length;
    if (length > *(volatile int*)longest) atomicMax(longest, length);
}

// Lists the aggregates that flows lead from, from `starts` on, and numbers them within the row: each
// entry of an aggregate's rows, one after the other, has a slot.
extern "C" __global__ void find_sources(
    const int* __restrict__ offsets, const int* __restrict__ columns,
    const unsigned short* __restrict__ kinds, const int* __restrict__ members, int width,
    const int* __restrict__ aggregate, const OFFSET* __restrict__ starts, int count, int* found,
    unsigned short* slots, int* lengths)
{
    int target = blockIdx.x * blockDim.x + threadIdx.x;
    if (target >= count) return;
    int* mine = found + starts[target];
    unsigned short* next = slots + starts[target];
    int length = 0;
    for (int place = 0; place < width; place++) {
        int row = members[(long long)target * width + place];
        if (row < 0) break;
        int kind = kind_of(kinds, row), origin = origin_of(kinds, row);
        for (int entry = offsets[kind]; entry < offsets[kind + 1]; entry++) {
            int source = aggregate[origin + columns[entry]];
            if (source == target) {
                *next++ = NO_SLOT;
                continue;
            }
            int slot = 0;
            while (slot < length && mine[slot] != source) slot++;
            if (slot == length) mine[length++] = source;
            *next++ = (unsigned short)slot;
        }
    }
    lengths[target] = length;
}

// Closes the gaps between the rows, and counts the entries that lead from each aggregate.
extern "C" __global__ void copy_sources(
    const int* __restrict__ found, const OFFSET* __restrict__ starts,
    const int* __restrict__ coarse_offsets, int count, int* coarse_columns, int* leaving)
{
    int target = blockIdx.x * blockDim.x + threadIdx.x;
    if (target >= count) return;
    const int* mine = found + starts[target];
    int begin = coarse_offsets[target], end = coarse_offsets[target + 1];
    for (int entry = begin; entry < end; entry++) {
        int source = mine[entry - begin];
        coarse_columns[entry] = source;
        atomicAdd(&leaving[source], 1);
    }
}

// Lists the entries that lead from each aggregate. Filled from each list's end, as cursors fall, by
// the last entries first, so that the lists are nearly in order.
extern "C" __global__ void place_entries(
    const int* __restrict__ coarse_columns, int entries, int* cursors, int* from_entries)
{
    int entry = entries - 1 - (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (entry >= 0) from_entries[atomicSub(&cursors[coarse_columns[entry]], 1) - 1] = entry;
}

// Puts each list in ascending order, so that sums do not depend on races.
extern "C" __global__ void order_entries(
    const int* __restrict__ from_offsets, int count, int* from_entries)
{
    int source = blockIdx.x * blockDim.x + threadIdx.x;
    if (source >= count) return;
    int begin = from_offsets[source], end = from_offsets[source + 1];
    for (int next = begin + 1; next < end; next++) {
        int entry = from_entries[next], place = next;
        for (; place > begin && from_entries[place - 1] > entry; place--)
            from_entries[place] = from_entries[place - 1];
        from_entries[place] = entry;
    }
}

// Adds up the flows between aggregates that the states' shares make: a thread a place of a member, in
// blocks of FLOW_THREADS; `width` is a power of two up to 32. The members of an aggregate read their
// entries side by side and add them in turn, so that sums do not depend on races. Short rows are summed
// in shared memory.
extern "C" __global__ void sum_flows(
    const int* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const unsigned short* __restrict__ kinds,
    const double* __restrict__ shares, const int* __restrict__ members, int width,
    const OFFSET* __restrict__ starts, const unsigned short* __restrict__ slots,
    const int* __restrict__ coarse_offsets, int count, double* coarse_values)
{
    extern __shared__ double sums[];
    int own_sums = threadIdx.x / width, lane = threadIdx.x % width;
    int target = blockIdx.x * (FLOW_THREADS / width) + own_sums;
    if (target >= count) return;
    unsigned together = (0xffffffffu >> (32 - width)) << (threadIdx.x % 32 - lane);
    int begin = coarse_offsets[target], length = coarse_offsets[target + 1] - begin;
    double* mine = length <= SLOTS ? sums + own_sums * SLOTS : coarse_values + begin;
    for (int slot = lane; slot < length; slot += width) mine[slot] = 0.0;
    int row = members[(long long)target * width + lane], first = 0, entries = 0, origin = 0;
    if (row >= 0) {
        int kind = kind_of(kinds, row);
        origin = origin_of(kinds, row);
        first = offsets[kind];
        entries = offsets[kind + 1] - first;
    }
    int behind = entries, most = entries;
    for (int reach = 1; reach < width; reach *= 2) {
        int before = __shfl_up_sync(together, behind, reach, width);
        if (lane >= reach) behind += before;
        most = max(most, __shfl_xor_sync(together, most, reach, width));
    }
    const unsigned short* own = slots + starts[target] + (behind - entries);
    for (int read = 0; read < most; read += READ_AT_ONCE) {
        int into[READ_AT_ONCE];
        double flow[READ_AT_ONCE];
#pragma unroll
        for (int next = 0; next < READ_AT_ONCE; next++) {
            int entry = first + read + next;
            into[next] = read + next < entries ? own[read + next] : NO_SLOT;
            flow[next] = into[next] == NO_SLOT ? 0.0 : values[entry] * shares[origin + columns[entry]];
        }
        for (int turn = 0; turn < width; turn++) {
            __syncwarp(together);
            if (turn != lane) continue;
#pragma unroll
            for (int next = 0; next < READ_AT_ONCE; next++)
                if (into[next] != NO_SLOT) mine[into[next]] += flow[next];
        }
    }
    __syncwarp(together);
    if (length > SLOTS) return;
    for (int slot = lane; slot < length; slot += width) coarse_values[begin + slot] = mine[slot];
}

// Adds up what leaves each aggregate, and sets its correction to 1. 2^lane_bits threads, up to 32,
// read a list side by side.
extern "C" __global__ void sum_leaving(
    const int* __restrict__ from_offsets, const int* __restrict__ from_entries,
    const double* __restrict__ values, int count, int lane_bits, double* out, double* correction)
{
    long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & ((1 << lane_bits) - 1);
    bool has_state = thread >> lane_bits < count;
    int state = has_state ? (int)(thread >> lane_bits) : count - 1;
    double total = 0.0;
    int end = from_offsets[state + 1];
    for (int place = from_offsets[state] + lane; place < end; place += 1 << lane_bits)
        total += values[from_entries[place]];
    total = sum_of_lanes(total, lane_bits);
    if (lane > 0 || !has_state) return;
    out[state] = total;
    correction[state] = 1.0;
}

// A sweep of Jacobi's method with relaxation for x F = x D, F the flows, D their sums. 2^lane_bits
// threads, up to 32, read a row side by side.
extern "C" __global__ void smooth_level(
    const int* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ out,
    const unsigned short* __restrict__ kinds, int rows, int lane_bits, double omega, double least,
    double most, const double* __restrict__ x, double* __restrict__ x_new)
{
    long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & ((1 << lane_bits) - 1);
    bool has_row = thread >> lane_bits < rows;
    int row = has_row ? (int)(thread >> lane_bits) : rows - 1;
    double total = 0.0;
    int kind = kind_of(kinds, row), end = offsets[kind + 1];
    const double* from = x + origin_of(kinds, row);
    for (int entry = offsets[kind] + lane; entry < end; entry += 1 << lane_bits)
        total += values[entry] * from[columns[entry]];
    total = sum_of_lanes(total, lane_bits);
    if (lane > 0 || !has_row) return;
    double after = x[row];
    // Flows that have vanished leave nothing to balance.
    if (out[kind] > 0.0) after = (1.0 - omega) * after + omega * (total / out[kind]);
    if (after < least) after = least;
    if (after > most) after = most;
    x_new[row] = after;
}

// Multiplies the values of each aggregate's members by its correction.
extern "C" __global__ void correct_level(
    double* x, const int* __restrict__ members, int width, const double* __restrict__ correction,
    int count, double least, double most)
{
    int target = blockIdx.x * blockDim.x + threadIdx.x;
    if (target >= count) return;
    double factor = correction[target];
    for (int place = 0; place < width; place++) {
        int state = members[(long long)target * width + place];
        if (state < 0) break;
        double after = x[state] * factor;
        if (after < least) after = least;
        if (after > most) after = most;
        x[state] = after;
    }
}

// Solves x F = x D for up to COARSEST states by elimination without subtraction, in one block of at
// least as many threads; the total flow stays what it was.
extern "C" __global__ void eliminate_coarsest(
    const int* __restrict__ offsets, const int* __restrict__ columns,
    const double* __restrict__ values, const double* __restrict__ out, int size, double* x)
{
    __shared__ double flows[COARSEST * COARSEST];
    __shared__ double shares[COARSEST], solution[COARSEST];
    __shared__ double factor;
    int thread = threadIdx.x;
    for (int cell = thread; cell < size * size; cell += blockDim.x) flows[cell] = 0.0;
    __syncthreads();
    if (thread < size)
        for (int entry = offsets[thread]; entry < offsets[thread + 1]; entry++)
            flows[columns[entry] * size + thread] = values[entry];
    __syncthreads();
    for (int last = size - 1; last > 0; last--) {
        if (thread < last) {
            double leaving = 0.0;
            for (int state = 0; state < last; state++) leaving += flows[last * size + state];
            shares[thread] = leaving > 0.0 ? flows[thread * size + last] / leaving : 0.0;
        }
        __syncthreads();
        for (int cell = thread; cell < last * last; cell += blockDim.x) {
            int row = cell / last, column = cell % last;
            if (shares[row] > 0.0)
                flows[row * size + column] += shares[row] * flows[last * size + column];
        }
        if (thread < last) flows[thread * size + last] = shares[thread];
        __syncthreads();
    }
    if (thread < size) solution[thread] = thread == 0 ? 1.0 : 0.0;
    __syncthreads();
    for (int state = 0; state < size; state++) {
        if (thread > state && thread < size)
            solution[thread] += solution[state] * flows[state * size + thread];
        __syncthreads();
    }
    if (thread == 0) {
        double wanted = 0.0, made = 0.0;
        for (int state = 0; state < size; state++) {
            wanted += out[state];
            made += solution[state] * out[state];
        }
        factor = made > 0.0 ? wanted / made : 1.0;
    }
    __syncthreads();
    if (thread < size) x[thread] = solution[thread] * factor;
}

// The sum over a block of SUM_THREADS threads, in an order that does not depend on races.
__device__ double block_sum(double value)
{
    __shared__ double shared[SUM_THREADS];
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int reach = SUM_THREADS / 2; reach > 0; reach /= 2) {
        if (threadIdx.x < reach) shared[threadIdx.x] += shared[threadIdx.x + reach];
        __syncthreads();
    }
    return shared[0];
}

// Part of the total flow a block: SUM_THREADS blocks of SUM_THREADS threads.
extern "C" __global__ void sum_total_flow(
    const double* __restrict__ x, const double* __restrict__ out,
    const unsigned short* __restrict__ kinds, int states, double* parts)
{
    double mine = 0.0;
    for (long long state = blockIdx.x * SUM_THREADS + threadIdx.x; state < states;
         state += SUM_THREADS * SUM_THREADS)
        mine += x[state] * out[kind_of(kinds, (int)state)];
    double total = block_sum(mine);
    if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

// Scales the iterate to the flow wanted, and writes the largest change of the cycle to its slot, of
// values that are not negligible. Blocks of SUM_THREADS.
extern "C" __global__ void end_cycle(
    const double* __restrict__ before, double* after, const double* __restrict__ parts,
    double wanted, int states, int absolute, double least, double* slot)
{
    double factor = wanted / block_sum(parts[threadIdx.x]);
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    double change = 0.0;
    if (state < states) {
        double value = after[state] * factor;
        after[state] = value;
        if (!(value <= least)) {
            change = fabs(value - before[state]);
            if (!absolute) change /= fabs(before[state]);
        }
    }
    // A change that is no number is larger than any; so is its bit pattern.
    for (int lane = 16; lane > 0; lane /= 2) {
        double other = __shfl_down_sync(0xffffffff, change, lane);
        if (other > change || other != other) change = other;
    }
    if (threadIdx.x % 32 == 0 && !(change <= *(volatile double*)slot))
        atomicMax((unsigned long long*)slot, (unsigned long long)__double_as_longlong(fabs(change)));
}

// Writes down the kind of each state. Runs of states are of one kind, and begin at `firsts`, which
// are ascending and end with the number of states.
extern "C" __global__ void spread_kinds(
    const int* __restrict__ firsts, const unsigned short* __restrict__ kinds_of_runs, int runs,
    int states, unsigned short* kinds)
{
    int state = blockIdx.x * blockDim.x + threadIdx.x;
    if (state >= states) return;
    int low = 0, high = runs;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (firsts[middle] <= state)
            low = middle;
        else
            high = middle;
    }
    kinds[state] = kinds_of_runs[low];
}
