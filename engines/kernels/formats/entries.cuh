// An entry dictionary: a code of CODE type for each pair of a distance (column - state) and a
// value, the codes interleaved by slices of 32 rows. The pairs lie in shared memory if STAGED.

#define CHUNKED
#define BATCH 8
#define MATRIX_PARAMETERS \
    SLICE_PARAMETERS, const CODE* __restrict__ codes, const int* __restrict__ distances, \
    const double* __restrict__ numbers, int num_pairs, DIVISOR_PARAMETERS
#define MATRIX SLICES, codes, distances, numbers, num_pairs, DIVISORS

// Distances and values lie apart: where 32 lanes read as many pairs anywhere in the table, words of
// 4 and of 8 bytes meet fewer bank conflicts than one of 16, and a value waits in no register for
// what its distance fetches.
struct Matrix {
    Slices slices;
    const CODE* codes;
    const int* distances;
    const double* numbers;
    Divisors divisors;
};

struct Head {
    SliceHead slice;
    OFFSET divisor;
};

struct Row {
    OFFSET first, tail, length;
    int state;
    double scale;
};

typedef CODE Word;

__device__ Matrix opened(MATRIX_PARAMETERS)
{
#ifdef STAGED
    // Values, then distances: in the order of their alignment.
    const double* values_here = copied(numbers, num_pairs, (double*)staged);
    const int* distances_here = copied(distances, num_pairs, (int*)((double*)staged + num_pairs));
    __syncthreads();
    return Matrix{{SLICES}, codes, distances_here, values_here, {DIVISORS}};
#else
    return Matrix{{SLICES}, codes, distances, numbers, {DIVISORS}};
#endif
}

__device__ Head head_of(const Matrix& matrix, OFFSET number)
{
    return Head{slice_head(matrix.slices, number), divisor_place(matrix.divisors, number)};
}

__device__ Row row_of(const Matrix& matrix, const Head& head, OFFSET number, int state)
{
    Reach reach = reach_of(matrix.slices, head.slice, number);
    return Row{head.slice.first, reach.tail, reach.length, state,
               scale_at(matrix.divisors, head.divisor)};
}

__device__ bool is_divided(const Matrix& matrix) { return matrix.divisors.reciprocals; }

__device__ Word word_at(const Matrix& matrix, const Row& row, OFFSET k)
{
    return __ldcs(matrix.codes + slot_at(matrix.slices, row.first, row.tail, k));
}

__device__ int column_of(const Matrix& matrix, const Row& row, Word word)
{
    return row.state + matrix.distances[word];
}

__device__ double value_of(const Matrix& matrix, Word word) { return matrix.numbers[word]; }
