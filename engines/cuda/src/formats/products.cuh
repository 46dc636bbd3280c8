// What the sweeps make of a format: rows shared out among threads, and products of rows with x.
//
// A format says how its `Matrix` is opened and what its rows are made of:
//   head_of    loads what a row is found by; nothing in it waits for another load of it;
//   row_of     the row, with its `length`; if DIVIDED, with the `scale` of its sum;
//   word_at    loads what is stored of the row's k-th entry;
//   column_of, value_of     what the word stands for;
//   given      the right-hand side, if OWN_GIVENS;
//   heads_of   the rows' heads, one after the other, if ALIKE: rows of equal heads have the same
//              distances and values, and `row_of` does with any of their numbers.
// A load takes hundreds of cycles and a row has a handful of entries, so that what counts is how
// many loads are on their way at a time: all words of a batch go before all reads of x, these
// before all sums, and the next row's head before the present row's words.

// Entries that are taken at a time of a row that threads share, and of one that a thread has to
// itself: of short rows fewer (engines/cuda/formats/batches.py).
#ifndef BATCH
#define BATCH 4
#endif
#ifndef OWN_BATCH
#define OWN_BATCH 4
#endif

// The most threads of a block that takes a chunk of rows, or rows by blocks.
#define MOST_THREADS 1024

// The bounds of kernels whose threads have rows of their own, and of those whose warps have. With
// too few registers for a batch the compiler takes its entries one after the other, which more
// threads do not make good.
#ifndef THREAD_BOUNDS
#define THREAD_BOUNDS MOST_THREADS, 1
#endif
#define WARP_BOUNDS 256, 4

#ifdef DIVIDED
__device__ double finished(const Row& row, double sum) { return row.scale * sum; }
#else
__device__ bool is_divided(const Matrix&) { return false; }

__device__ double finished(const Row&, double sum) { return sum; }
#endif

#ifndef OWN_GIVENS
__device__ double given(const Matrix&, const Row&, const REAL* offset, OFFSET number)
{
    return offset ? offset[number] : 0.0;
}
#endif

__device__ Row row_number(const Matrix& matrix, OFFSET number, int state)
{
    return row_of(matrix, head_of(matrix, number), number, state);
}

// Sums of numbers are of the type that they are widened to.
__device__ double in_double(double number) { return number; }

__device__ double in_double(float number) { return number; }

__device__ double2 in_double(double2 numbers) { return numbers; }

__device__ void set(double& sum, double value) { sum = value; }

__device__ void set(double2& sum, double value) { sum = double2{value, value}; }

__device__ double with_product(double sum, double value, double at) { return sum + value * at; }

__device__ double2 with_product(double2 sum, double value, double2 at)
{
    return double2{sum.x + value * at.x, sum.y + value * at.y};
}

__device__ double zero_unless(bool there, double at) { return there ? at : 0.0; }

__device__ double zero_unless(bool there, float at) { return there ? at : 0.0f; }

__device__ double2 zero_unless(bool there, double2 at)
{
    return double2{there ? at.x : 0.0, there ? at.y : 0.0};
}

#ifndef OWN_SUMS
// `sum` and every `step`-th product of a row from entry k on, SIZE of them, added in the order of
// entries. Where they reach beyond the row's end, the last entry is loaded again, so that nothing
// branches, and adds nothing: its value, which is finite, times zero. x gives a `Stored` for a column.
template <int SIZE, class Stored, class Vector, class Number>
__device__ Number with_batch(const Matrix& matrix, const Row& row, OFFSET k, int step,
                             const Vector& x, Number sum)
{
    OFFSET left = row.length - 1 - k;
    Word words[SIZE];
    Stored read[SIZE];
#pragma unroll
    for (int b = 0; b < SIZE; b++)
        words[b] = word_at(matrix, row, k + min((OFFSET)(b * step), left));
#pragma unroll
    for (int b = 0; b < SIZE; b++) read[b] = x[column_of(matrix, row, words[b])];
#pragma unroll
    for (int b = 0; b < SIZE; b++) {
        Number at = zero_unless(b * step <= left, read[b]);
        sum = with_product(sum, value_of(matrix, words[b]), at);
    }
    return sum;
}

// The same of all entries from `first` on. A thread that has a row to itself takes fewer at a time.
template <class Stored, class Vector, class Number>
__device__ Number with_products_of(const Matrix& matrix, const Row& row, OFFSET first, int step,
                                   const Vector& x, Number sum)
{
    OFFSET k = first;
    if (step == 1) {
#pragma unroll 1
        for (; k < row.length; k += OWN_BATCH)
            sum = with_batch<OWN_BATCH, Stored>(matrix, row, k, 1, x, sum);
    } else {
#pragma unroll 1
        for (; k < row.length; k += BATCH * step)
            sum = with_batch<BATCH, Stored>(matrix, row, k, step, x, sum);
    }
    return sum;
}

template <class Stored, class Number>
__device__ Number with_products(const Matrix& matrix, const Row& row, OFFSET first, int step,
                                const Stored* x, Number sum)
{
    return with_products_of<Stored>(matrix, row, first, step, x, sum);
}
#endif

// Sweeps go to and fro: the next one begins where the last one ended, with what the second-level cache
// still holds of rows and iterates. The iterates change places after each sweep, so that their
// addresses say which way it goes.
__device__ bool goes_back(const void* x, const void* x_new) { return x > x_new; }

// The block whose rows a block takes.
__device__ unsigned own_block(bool back) { return back ? gridDim.x - 1 - blockIdx.x : blockIdx.x; }

// The rows or groups of a thread: `number` is the present one, the i-th of its block's `count`.
struct Share {
    unsigned number, i, count, step;

    __device__ bool is_over() const { return i >= count; }

    __device__ void advance()
    {
        i += blockDim.x;
        if (i < count) number += step;
    }
};

// Where a block takes `chunk` of `count` rows or groups, and each thread one of every blockDim.
__device__ Share own_share(unsigned count, unsigned chunk, bool back)
{
    unsigned begin = own_block(back) * chunk, own = min(begin + chunk, count) - begin;
    unsigned i = threadIdx.x;
    return Share{begin + (back ? own - 1 - i : i), i, own, back ? 0 - blockDim.x : blockDim.x};
}

struct Ahead {
    Head head;
    int state;
};

__device__ Ahead looked_up(const Matrix& matrix, const int* states, OFFSET number)
{
    return Ahead{head_of(matrix, number), states ? states[number] : (int)number};
}

// The rows of a thread: since they follow one another through the block, what a row reads of x is
// still in the processor's cache when a row nearby reads it again. For each of them
// `take(number, state, row, before, start, sum)` is called with x at its state, and the sum of its
// products, which begins with what is given, `start`, unless the row is divided.
template <class Stored, class Take>
__device__ void for_own_rows(const Matrix& matrix, const REAL* offset, const int* states,
                             unsigned rows, unsigned chunk, bool back, const Stored* x, Take take)
{
    Share share = own_share(rows, chunk, back);
    if (share.is_over()) return;
    unsigned number = share.number;
    Ahead ahead = looked_up(matrix, states, number);
    for (;;) {
        int state = ahead.state;
        Row row = row_of(matrix, ahead.head, number, state);
        double start = given(matrix, row, offset, number);
        auto before = in_double(x[state]), sum = before;
        set(sum, is_divided(matrix) ? 0.0 : start);
#ifdef CHUNKED
        share.advance();
        ahead = looked_up(matrix, states, share.number);
#endif
        sum = with_products(matrix, row, 0, 1, x, sum);
        take(number, state, row, before, start, sum);
#ifdef CHUNKED
        if (share.is_over()) return;
        number = share.number;
#else
        return;
#endif
    }
}

// What is given of a row plus its product with x, of what `for_own_rows` hands over.
__device__ double total_of(const Matrix& matrix, const Row& row, double start, double sum)
{
    return is_divided(matrix) ? start + finished(row, sum) : sum;
}

// The same by one thread from scratch.
__device__ double row_total(const Matrix& matrix, OFFSET number, int state, const REAL* offset,
                            const REAL* x)
{
    Row row = row_number(matrix, number, state);
    double start = given(matrix, row, offset, number);
    return total_of(matrix, row, start,
                    with_products(matrix, row, 0, 1, x, is_divided(matrix) ? 0.0 : start));
}

__device__ double over_warp(double value)
{
    for (int other = 16; other > 0; other /= 2)
        value += __shfl_down_sync(0xffffffff, value, other);
    return value;
}

// Entries of a row that a warp takes at a time where rows are shared out by blocks, and the most
// pieces that a row is cut into; longer rows have longer pieces.
#define PIECE 512
#define MOST_PIECES 64

// The products of as many rows as the block has warps, from `first` on. Rows are cut into pieces
// and these dealt out to all warps, whatever their rows; then each row's pieces are added up, in an
// order that depends on nothing else. `take(number, state, row, sum)` is
// called by one thread for each row. Every thread of the block takes part.
template <class Take>
__device__ void for_rows_of_block(
    const Matrix& matrix, const int* states, int first, int rows, const REAL* x, Take take)
{
    __shared__ double of_piece[MOST_THREADS / 32 * MOST_PIECES];
    __shared__ int pieces_of[MOST_THREADS / 32];
    int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int own = first + warp, own_state = own < rows && states ? states[own] : own;
    Row own_row = {};
    if (own < rows) own_row = row_number(matrix, own, own_state);
    int own_pieces = (int)min((own_row.length + PIECE - 1) / PIECE, (OFFSET)MOST_PIECES);
    if (lane == 0) pieces_of[warp] = own_pieces;
    __syncthreads();
    // Lane l knows how many pieces the rows up to the l-th have.
    int until = lane < warps ? pieces_of[lane] : 0;
    for (int reach = 1; reach < 32; reach *= 2) {
        int other = __shfl_up_sync(0xffffffff, until, reach);
        if (lane >= reach) until += other;
    }
    int total = __shfl_sync(0xffffffff, until, 31);
    for (int piece = warp; piece < total; piece += warps) {
        int owner = __popc(__ballot_sync(0xffffffff, until <= piece));
        int begins = __shfl_sync(0xffffffff, until, (owner + 31) % 32);
        int number = first + owner;
        Row row = row_number(matrix, number, states ? states[number] : number);
        OFFSET size = (row.length - 1) / ((OFFSET)PIECE * MOST_PIECES) * PIECE + PIECE;
        OFFSET from = (piece - (owner > 0 ? begins : 0)) * size;
        row.length = min(row.length, from + size);
        double sum = over_warp(with_products(matrix, row, from + lane, 32, x, 0.0));
        if (lane == 0) of_piece[piece] = sum;
    }
    __syncthreads();
    int behind = __shfl_sync(0xffffffff, until, warp), begin = behind - own_pieces;
    double sum = 0.0;
    for (int piece = begin + lane; piece < behind; piece += 32) sum += of_piece[piece];
    sum = over_warp(sum);
    if (lane == 0 && own < rows) take(own, own_state, own_row, finished(own_row, sum));
    __syncthreads();
}
