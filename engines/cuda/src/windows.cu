// Sweeps of banded matrices: a block takes a chunk of rows, in order, and keeps in shared memory the
// window of x that its present rows read. What a sweep reads of x is so fetched once, and ahead.
//
// Compiled as sweep.cu is, behind the same headers. Rows are numbered as their states are.
//
// A thread takes TOGETHER rows at a time. The window is a ring, wide enough for what the present rows
// read and for what the next ones will beside: pieces of as many entries as rows are taken at a
// time, each of which takes the place of what no row reads any more. The ring's first entries
// are there once more behind its end, so that what a thread's rows read lies 32 apart. Heads of a
// format whose rows may be alike lie behind the ring, piece by piece; others are loaded ahead.
//
// Copies by the processor's own engine, which count themselves off at a barrier, need compute
// capability 9.0; for less the kernels are empty, and nobody calls them.

#ifndef STAGED
extern __shared__ double2 staged[];
#endif

// Copies to shared memory are whole multiples of 16 bytes, and begin at such.
#define QUANTUM (16 / (int)sizeof(REAL))

// The most pieces that are in the ring or on their way. Each has a barrier in shared memory, so that a
// warp may be ahead of another.
#define MOST_AHEAD 16

#define TOGETHER 4

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

// Arrives at a barrier whose phase is over when so many bytes have been copied.
__device__ void arrive_before(Barrier* barrier, int bytes)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

// Arrives at a barrier, and returns whether that ends the phase.
__device__ bool arrive_last(Barrier* barrier)
{
    unsigned pending;
    asm volatile(
        "{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%1]; "
        "mbarrier.pending_count.b64 %0, state; }"
        : "=r"(pending)
        : "r"(shared_address(barrier))
        : "memory");
    return pending == 1;
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
__device__ void start_copy(void* to, const void* from, int bytes, Barrier* barrier)
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

    // Of numbers without signs the least is the one that lies within the ring.
    __device__ int place_of(int column) const
    {
        unsigned place = column + shift;
        place = min(place, place + size);
        return min(place, place - size);
    }

    __device__ REAL operator[](int column) const { return entries[place_of(column)]; }
};

// Raises the largest change to those of a thread's rows. As by `raise_change`, one after the other,
// but that rows which cannot matter are told at once.
__device__ void raise_changes(double& largest, const double* before, const double* after,
                              int absolute)
{
    bool rises = false;
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) {
        double change = fabs(after[t] - before[t]);
        double scale = absolute ? 1.0 : scale_of(before[t]);
        rises = rises || change > largest * (NEARLY * scale);
    }
    if (!rises) return;
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) raise_change(largest, before[t], after[t], absolute);
}

#if __CUDA_ARCH__ >= 900
// The ring of a block whose rows are taken in groups, from first to last or back.
struct Ring {
    const REAL* x;
    REAL* entries;
    int size, again;        // its entries, and how many of them are there once more
    int first, last;        // columns of the first group's window, whose first lies at place 0
    int group, groups;      // rows of a group, and how many groups there are
    int ahead;              // pieces that the ring holds
    int behind;             // the column behind all that the block reads
    bool back;
#ifdef ALIKE
    const Head* heads;      // of all rows
    Head* own_heads;        // those of the pieces that the ring holds
    int begin, end;         // rows of the block
#endif
    Barrier* filled;        // of each piece that the ring holds
    Barrier* emptied;       // where warps arrive that have done with the group of that piece

    // Copies what lies between two columns to a place and what follows it, and returns its bytes; only
    // counts them without a barrier.
    __device__ int copied(int from, int to, int place, Barrier* barrier) const
    {
        int skipped = max(-from, 0), count = min(to, behind) - from - skipped;
        if (count <= 0) return 0;
        int bytes = count * (int)sizeof(REAL);
        if (barrier) start_copy(entries + place + skipped, x + from + skipped, bytes, barrier);
        return bytes;
    }

    // The same of what lies in the ring, where it may begin anew.
    __device__ int copied_round(int from, int to, int place, Barrier* barrier) const
    {
        int until = min(to, from + size - place), bytes = copied(from, until, place, barrier);
        if (place < again)
            bytes += copied(from, min(until, from + again - place), place + size, barrier);
        if (until == to) return bytes;
        return bytes + copied(until, to, 0, barrier)
               + copied(until, min(to, until + again), size, barrier);
    }

    // Fetches the n-th piece: the window of the first group that is taken, or what a later one adds.
    // It lies at `place` in the ring, and `slot` is n modulo the pieces that the ring holds.
    __device__ void fetch(int n, int slot, int place) const
    {
        if (n >= groups) return;
        int from = back ? first - n * group : last + (n - 1) * group, to = from + group;
        if (n == 0) from = first, to = last;
        Barrier* barrier = filled + slot;
        int bytes = copied_round(from, to, place, nullptr);
#ifdef ALIKE
        int rows_from = begin + (back ? groups - 1 - n : n) * group;
        int rows = min(group, end - rows_from);
        int bytes_of_heads = (rows * (int)sizeof(Head) + 15) / 16 * 16;
        arrive_before(barrier, bytes + bytes_of_heads);
        start_copy(own_heads + slot * group, heads + rows_from, bytes_of_heads, barrier);
#else
        arrive_before(barrier, bytes);
#endif
        copied_round(from, to, place, barrier);
    }

    // Prepares the barriers, and fetches all that the ring holds. By one thread.
    __device__ void open() const
    {
        for (int i = 0; i < ahead; i++) {
            prepare(filled + i, 1);
            prepare(emptied + i, blockDim.x / 32);
        }
        publish_barriers();
        for (int i = 0; i < ahead; i++)
            fetch(i, i, i == 0 ? 0 : back ? size - i * group : last - first + (i - 1) * group);
    }

    // Notes that a warp has done with the n-th group, whose window begins at `place`; the last warp has
    // what nobody reads any more replaced.
    __device__ void leave(int n, int slot, int phase, int place) const
    {
        if (!arrive_last(emptied + slot)) return;
        await(emptied + slot, phase);
        if (back) place += last - first - group;
        fetch(n + ahead, slot, place < size ? place : place - size);
    }
};

// The total of a row.
__device__ double row_total_by_window(const Matrix& matrix, Head head, const Window& window,
                                      const REAL* offset, int state)
{
    Row row = row_of(matrix, head, state, state);
    double start = given(matrix, row, offset, state), sum = is_divided(matrix) ? 0.0 : start;
    sum = with_products_of<REAL>(matrix, row, 0, 1, window, sum);
    return total_of(matrix, row, start, sum);
}

#ifdef ALIKE
// The totals of a thread's rows: all as if they were like one in the middle, and then again those
// that are not.
__device__ void set_totals(const Matrix& matrix, const Head* heads, const Window& window,
                           const REAL* offset, int number, double* total)
{
    Head common = heads[32 * (TOGETHER / 2)];
    Row row = row_of(matrix, common, number, number);
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) total[t] = given(matrix, row, offset, number + 32 * t);
#pragma unroll 2
    for (OFFSET k = 0; k < row.length; k++) {
        Word word = word_at(matrix, row, k);
        const REAL* read = window.entries + window.place_of(column_of(matrix, row, word));
#pragma unroll
        for (int t = 0; t < TOGETHER; t++)
            total[t] = with_product(total[t], value_of(matrix, word), read[32 * t]);
    }
    int odd = 0;
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) odd |= (heads[32 * t] != common) << t;
#pragma unroll 1
    for (; odd != 0; odd &= odd - 1) {
        int which = __ffs(odd) - 1;
        double sum = row_total_by_window(matrix, heads[32 * which], window, offset,
                                         number + 32 * which);
#pragma unroll
        for (int t = 0; t < TOGETHER; t++)
            if (t == which) total[t] = sum;
    }
}
#else
// Waits for what was loaded before a loop that loads the same ahead: the processor counts loads of
// both alike, and would wait for the later ones too. `zero` is 0, which the compiler must not know.
__device__ void settle(Head& head, int zero)
{
    int words[sizeof(Head) / 4];
    memcpy(words, &head, sizeof(Head));
    for (int i = 0; i < (int)sizeof(Head) / 4; i++) words[i] += zero;
    memcpy(&head, words, sizeof(Head));
}

// The totals of a thread's rows.
__device__ void set_totals(const Matrix& matrix, const Head* heads, const Window& window,
                           const REAL* offset, int number, double* total)
{
#pragma unroll
    for (int t = 0; t < TOGETHER; t++)
        total[t] = row_total_by_window(matrix, heads[t], window, offset, number + 32 * t);
}
#endif
#endif

extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) sweep_rows_by_window(
    MATRIX_PARAMETERS, const REAL* __restrict__ offset, int rows, int chunk, int below, int above,
    int size, int ring_at, double omega, const REAL* __restrict__ x, REAL* __restrict__ x_new,
    const double* before_slot, double* slot, double stop_below, int absolute, int early)
{
#if __CUDA_ARCH__ >= 900
    __shared__ Barrier filled[MOST_AHEAD], emptied[MOST_AHEAD];
    bool back = goes_back(x, x_new);
    int step = blockDim.x * TOGETHER;
    int begin = blockIdx.x * chunk, end = min(begin + chunk, rows);
    int groups = (end - begin + step - 1) / step;
    int first = begin + (back ? (groups - 1) * step : 0);
    REAL* entries = (REAL*)((char*)staged + ring_at);
    // Behind the last state, x is read to the next whole 16 bytes.
    int behind = (min(end + above, rows) + QUANTUM - 1) / QUANTUM * QUANTUM;
    int again = 32 * (TOGETHER - 1);
    Ring ring = {x, entries, size, again, first - below, first + step + above, step, groups,
                 (size - below - above) / step, behind, back,
#ifdef ALIKE
                 heads_of(MATRIX), (Head*)(entries + size + again), begin, end,
#endif
                 filled, emptied};
    if (threadIdx.x == 0) ring.open();
    double previous = *before_slot;
    bool over = previous < stop_below;
    __syncthreads();
    if (early && over) {
        // No block ends before all that was fetched for it has come.
        for (int i = 0; i < min(ring.ahead, groups); i++) await(filled + i, 0);
        return pass_on(previous, slot);
    }
    Matrix matrix = opened(MATRIX);
    int mine = threadIdx.x / 32 * (32 * TOGETHER) + threadIdx.x % 32;
    int number = first + mine, place = below + mine;
#ifndef ALIKE
    Head heads[TOGETHER];
#pragma unroll
    for (int t = 0; t < TOGETHER; t++)
        heads[t] = head_of(matrix, min(number + 32 * t, end - 1));
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) settle(heads[t], size >> 30);
#endif
    double change = 0.0;
    int piece = 0, phase = 0;
    for (int n = 0; n < groups; n++) {
        await(filled + piece, phase);
        Window window = {entries, size, place - number};
        if (number + 32 * (TOGETHER - 1) < end) {
#ifdef ALIKE
            const Head* heads = ring.own_heads + piece * step + mine;
#endif
            double before[TOGETHER], after[TOGETHER];
            set_totals(matrix, heads, window, offset, number, after);
#pragma unroll
            for (int t = 0; t < TOGETHER; t++) before[t] = entries[place + 32 * t];
#pragma unroll
            for (int t = 0; t < TOGETHER; t++) {
                REAL kept = ROUNDED(relaxed(before[t], after[t], omega));
                if (!over) x_new[number + 32 * t] = kept;
                after[t] = kept;
            }
            raise_changes(change, before, after, absolute);
        } else {
#pragma unroll 1
            for (int state = number; state < end; state += 32) {
                double before = window[state];
                Head head = head_of(matrix, state);
                double total = row_total_by_window(matrix, head, window, offset, state);
                double after = relaxed(before, total, omega);
                store(x_new, state, before, after, absolute, previous, over, change);
            }
        }
#ifndef ALIKE
        // Not sooner: what waits for any load waits for these as well.
        int next = max(back ? number - step : number + step, begin);
#pragma unroll
        for (int t = 0; t < TOGETHER; t++)
            heads[t] = head_of(matrix, min(next + 32 * t, end - 1));
#endif
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            int from = place - mine - below;
            ring.leave(n, piece, phase, from < 0 ? from + size : from);
        }
        number += back ? -step : step;
        place += back ? size - step : step;
        if (place >= size) place -= size;
        if (++piece == ring.ahead) {
            piece = 0;
            phase ^= 1;
        }
    }
    record(over ? previous : change, slot);
#endif
}
