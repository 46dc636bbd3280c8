// A value dictionary: each entry is a code of CODE type and a COLUMN: the column itself (int), or
// its distance from the row's state (short).

#ifdef ALONE
// A thread has one row, as in CSR.
#define THREAD_BOUNDS 256, (__CUDA_ARCH__ < 800 ? 4 : 8)
#else
#define CHUNKED
#endif
#define BATCH 8
#define MATRIX_PARAMETERS \
    const OFFSET* __restrict__ offsets, const COLUMN* __restrict__ columns, \
    const CODE* __restrict__ codes, const double* __restrict__ numbers, DIVISOR_PARAMETERS
#define MATRIX offsets, columns, codes, numbers, DIVISORS

struct Matrix {
    const OFFSET* offsets;
    const COLUMN* columns;
    const CODE* codes;
    const double* numbers;
    Divisors divisors;
};

struct Head {
    OFFSET begin, end, divisor;
};

struct Row {
    OFFSET begin, length;
    int origin;
    double scale;
};

struct Word {
    COLUMN column;
    CODE code;
};

__device__ Matrix opened(MATRIX_PARAMETERS)
{
    return Matrix{offsets, columns, codes, numbers, {DIVISORS}};
}

__device__ Head head_of(const Matrix& matrix, OFFSET number)
{
    return Head{matrix.offsets[number], matrix.offsets[number + 1],
                divisor_place(matrix.divisors, number)};
}

__device__ Row row_of(const Matrix& matrix, const Head& head, OFFSET, int state)
{
    int origin = sizeof(COLUMN) == sizeof(int) ? 0 : state;
    return Row{head.begin, head.end - head.begin, origin,
               scale_at(matrix.divisors, head.divisor)};
}

__device__ bool is_divided(const Matrix& matrix) { return matrix.divisors.reciprocals; }

__device__ Word word_at(const Matrix& matrix, const Row& row, OFFSET k)
{
    return Word{matrix.columns[row.begin + k], matrix.codes[row.begin + k]};
}

__device__ int column_of(const Matrix&, const Row& row, const Word& word)
{
    return row.origin + word.column;
}

__device__ double value_of(const Matrix& matrix, const Word& word)
{
    return matrix.numbers[word.code];
}
