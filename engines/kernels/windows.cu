// Sweeps of banded matrices: a block takes a chunk of rows, in order, and keeps in shared memory the
// window of x that its present rows read. What a sweep reads of x is so fetched once, and ahead.
//
// Compiled as sweep.cu is, behind the same headers. Rows are numbered as their states are.
//
// The window is a ring of stages, each as many entries as rows are taken at a time: the stages that
// the present rows read, and STAGES_AHEAD that are on their way or about to be left. A thread takes
// TOGETHER rows at a time. The ring's first entries are there once more behind its end, so that
// what these rows read lies 32 apart.
//
// Copies by the processor's own engine, which count themselves off at a barrier, need compute
// capability 9.0; for less the kernels are empty, and nobody calls them.

#define STAGES_AHEAD 2

#ifndef STAGED
extern __shared__ double2 staged[];
#endif

// Copies to shared memory are whole multiples of 16 bytes, and begin at such.
#define QUANTUM (16 / (int)sizeof(REAL))

// Stages are handed over by barriers in shared memory, so that a warp may be ahead of another.
#define MOST_STAGES 32

typedef unsigned long long Barrier;

__device__ unsigned shared_address(const void* there)
{
    return (unsigned)__cvta_generic_to_shared(there);
}

#if __CUDA_ARCH__ >= 900
__device__ void prepare(Barrier* barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

// Lets copies see barriers that were prepared.
__device__ void publish_barriers() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ void arrive(Barrier* barrier)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(
                     shared_address(barrier))
                 : "memory");
}

// The same, and the phase is over no sooner than so many bytes have been copied.
__device__ void arrive_before(Barrier* barrier, int bytes)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

// Waits until a phase of a barrier is over, where phases are told apart by being odd.
__device__ void await(Barrier* barrier, int phase)
{
    unsigned over;
    do {
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; "
            "selp.u32 %0, 1, 0, p; }"
            : "=r"(over)
            : "r"(shared_address(barrier)), "r"(phase & 1)
            : "memory");
    } while (!over);
}

// Starts a copy to shared memory, which a barrier counts.
__device__ void start_copy(REAL* to, const REAL* from, int bytes, Barrier* barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}
#endif

// x by columns, as far as the ring holds it: column 0 would lie at `shift`.
struct Window {
    const REAL* entries;
    int size, shift;

    __device__ int place_of(int column) const
    {
        int place = column + shift;
        if (place < 0) return place + size;
        return place >= size ? place - size : place;
    }

    __device__ REAL operator[](int column) const { return entries[place_of(column)]; }
};

// Waits for what was loaded before a loop that loads the same ahead: the processor counts loads of
// both alike, and would wait for the later ones too. `zero` is 0, which the compiler must not know.
template <class Loaded>
__device__ void settle(Loaded& loaded, int zero)
{
    if constexpr (sizeof(Loaded) < 4) {
        loaded = (Loaded)(loaded + zero);
    } else {
        int words[sizeof(Loaded) / 4];
        memcpy(words, &loaded, sizeof(Loaded));
        for (int i = 0; i < (int)sizeof(Loaded) / 4; i++) words[i] += zero;
        memcpy(&loaded, words, sizeof(Loaded));
    }
}

// Raises the largest change to those of a thread's rows, of which `count` are there. As by
// `raise_change`, one after the other, but that rows which cannot matter are told at once.
template <int TOGETHER>
__device__ void raise_changes(double& largest, const double* before, const double* after, int count,
                              int absolute)
{
    bool rises = false;
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) {
        double change = fabs(after[t] - before[t]);
        double scale = absolute ? 1.0 : scale_of(before[t]);
        rises = rises || (t < count && change > largest * (NEARLY * scale));
    }
    if (!rises) return;
#pragma unroll
    for (int t = 0; t < TOGETHER; t++)
        if (t < count) raise_change(largest, before[t], after[t], absolute);
}

#if __CUDA_ARCH__ >= 900
template <int TOGETHER>
__device__ void sweep_by_window(
    MATRIX_PARAMETERS, const REAL* __restrict__ offset, int rows, int chunk, int below, int above,
    int stages, int ring_at, double omega, const REAL* __restrict__ x, REAL* __restrict__ x_new,
    const double* before_slot, double* slot, double stop_below, int absolute, int early)
{
    double previous = *before_slot;
    bool over = previous < stop_below;
    if (early && over) return pass_on(previous, slot);
    Matrix matrix = opened(MATRIX);
    int step = blockDim.x * TOGETHER, size = stages * step;
    int begin = blockIdx.x * chunk, end = (int)own_end(rows, chunk);
    REAL* ring = (REAL*)((char*)staged + ring_at);
    __shared__ Barrier filled[MOST_STAGES], emptied[MOST_STAGES];
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; i++) {
            prepare(filled + i, 1);
            prepare(emptied + i, blockDim.x / 32);
        }
        publish_barriers();
    }
    __syncthreads();
    // The first thread fetches for all. Behind the last state, x is read to the next whole 16 bytes.
    int last = (min(end + above, rows) + QUANTUM - 1) / QUANTUM * QUANTUM;
    int fetched = begin - below, slot_to_fill = 0, filled_rounds = 0;
    auto fetch_next = [&]() {
        if (filled_rounds > 0) await(emptied + slot_to_fill, filled_rounds - 1);
        Barrier* barrier = filled + slot_to_fill;
        int from = max(fetched, 0), count = min(fetched + step, last) - from;
        int again = slot_to_fill > 0 ? 0 : min(count, 32 * (TOGETHER - 1) - (from - fetched));
        count = max(count, 0);
        again = max(again, 0);
        arrive_before(barrier, (count + again) * (int)sizeof(REAL));
        REAL* to = ring + slot_to_fill * step + (from - fetched);
        if (count > 0) start_copy(to, x + from, count * (int)sizeof(REAL), barrier);
        if (again > 0) start_copy(to + size, x + from, again * (int)sizeof(REAL), barrier);
        fetched += step;
        if (++slot_to_fill == stages) {
            slot_to_fill = 0;
            filled_rounds++;
        }
    };
    if (threadIdx.x == 0)
        for (int i = 0; i < stages - 1; i++) fetch_next();
    int awaited = stages - STAGES_AHEAD - 1, awaited_rounds = 0, present = 0;
    auto next_stage = [&]() {
        if (++awaited < stages) return;
        awaited = 0;
        awaited_rounds++;
    };
    for (int i = 0; i < awaited; i++) await(filled + i, 0);
    int mine = threadIdx.x / 32 * (32 * TOGETHER) + threadIdx.x % 32;
    int number = begin + mine, place = below + mine;
    Head heads[TOGETHER];
#pragma unroll
    for (int t = 0; t < TOGETHER; t++)
        heads[t] = head_of(matrix, min(number + 32 * t, end - 1));
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) settle(heads[t], stages >> 30);
    double change = 0.0;
    for (int from = begin; from < end; from += step) {
        if (threadIdx.x == 0 && from > begin) fetch_next();
        await(filled + awaited, awaited_rounds);
        next_stage();
        if (number < end) {
            int count = min((end - number + 31) / 32, TOGETHER);
            Window window = {ring, size, place - number};
            double before[TOGETHER], total[TOGETHER];
            bool same = false;
#ifdef ALIKE
            same = count == TOGETHER;
#pragma unroll
            for (int t = 1; t < TOGETHER; t++) same = same && are_alike(heads[0], heads[t]);
            if (same) {
                Row row = row_of(matrix, heads[0], number, number);
#pragma unroll
                for (int t = 0; t < TOGETHER; t++) {
                    before[t] = ring[place + 32 * t];
                    total[t] = given(matrix, row, offset, number + 32 * t);
                }
#pragma unroll 2
                for (OFFSET k = 0; k < row.length; k++) {
                    Word word = word_at(matrix, row, k);
                    const REAL* read = ring + window.place_of(column_of(matrix, row, word));
#pragma unroll
                    for (int t = 0; t < TOGETHER; t++)
                        total[t] = with_product(total[t], value_of(matrix, word), read[32 * t]);
                }
            }
#endif
            if (!same) {
#pragma unroll
                for (int t = 0; t < TOGETHER; t++) {
                    int state = min(number + 32 * t, end - 1);
                    Row row = row_of(matrix, heads[t], state, state);
                    double start = given(matrix, row, offset, state);
                    before[t] = ring[place + 32 * t];
                    total[t] = is_divided(matrix) ? 0.0 : start;
                    total[t] = with_products_of<REAL>(matrix, row, 0, 1, window, total[t]);
                    total[t] = total_of(matrix, row, start, total[t]);
                }
            }
#pragma unroll
            for (int t = 0; t < TOGETHER; t++) {
                REAL kept = ROUNDED(relaxed(before[t], total[t], omega));
                if (!over && t < count) x_new[number + 32 * t] = kept;
                total[t] = kept;
            }
            // Not sooner: what waits for any load waits for these as well.
#pragma unroll
            for (int t = 0; t < TOGETHER; t++)
                heads[t] = head_of(matrix, min(number + step + 32 * t, end - 1));
            raise_changes<TOGETHER>(change, before, total, count, absolute);
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(emptied + present);
        if (++present == stages) present = 0;
        number += step;
        place = place + step < size ? place + step : place + step - size;
    }
    // No block ends before all that was fetched for it has come.
    if (threadIdx.x == 0)
        for (; awaited != slot_to_fill; next_stage()) await(filled + awaited, awaited_rounds);
    record(over ? previous : change, slot);
}
#endif

// Four rows of a thread at a time.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) sweep_rows_by_window(
    MATRIX_PARAMETERS, const REAL* __restrict__ offset, int rows, int chunk, int below, int above,
    int stages, int ring_at, double omega, const REAL* __restrict__ x, REAL* __restrict__ x_new,
    const double* before_slot, double* slot, double stop_below, int absolute, int early)
{
#if __CUDA_ARCH__ >= 900
    sweep_by_window<4>(MATRIX, offset, rows, chunk, below, above, stages, ring_at, omega, x, x_new,
                       before_slot, slot, stop_below, absolute, early);
#endif
}

// Two at a time, where stages of half the size leave room for a wider window.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) sweep_rows_by_wide_window(
    MATRIX_PARAMETERS, const REAL* __restrict__ offset, int rows, int chunk, int below, int above,
    int stages, int ring_at, double omega, const REAL* __restrict__ x, REAL* __restrict__ x_new,
    const double* before_slot, double* slot, double stop_below, int absolute, int early)
{
#if __CUDA_ARCH__ >= 900
    sweep_by_window<2>(MATRIX, offset, rows, chunk, below, above, stages, ring_at, omega, x, x_new,
                       before_slot, slot, stop_below, absolute, early);
#endif
}
