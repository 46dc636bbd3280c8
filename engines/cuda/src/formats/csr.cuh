// Compressed sparse rows: a row's entries lie between two offsets.

// A thread has one row, so that the wait for its offsets is hidden by other threads alone.
#define THREAD_BOUNDS 256, (__CUDA_ARCH__ < 800 ? 4 : 6)
#define MATRIX_PARAMETERS \
    const OFFSET* __restrict__ offsets, const int* __restrict__ columns, \
    const REAL* __restrict__ values
#define MATRIX offsets, columns, values

struct Matrix {
    const OFFSET* offsets;
    const int* columns;
    const REAL* values;
};

struct Head {
    OFFSET begin, end;
};

struct Row {
    OFFSET begin, length;
};

struct Word {
    int column;
    REAL value;
};

__device__ Matrix opened(MATRIX_PARAMETERS) { return Matrix{MATRIX}; }

__device__ Head head_of(const Matrix& matrix, OFFSET number)
{
    return Head{matrix.offsets[number], matrix.offsets[number + 1]};
}

__device__ Row row_of(const Matrix&, const Head& head, OFFSET, int)
{
    return Row{head.begin, head.end - head.begin};
}

__device__ Word word_at(const Matrix& matrix, const Row& row, OFFSET k)
{
    return Word{matrix.columns[row.begin + k], matrix.values[row.begin + k]};
}

__device__ int column_of(const Matrix&, const Row&, const Word& word) { return word.column; }

__device__ double value_of(const Matrix&, const Word& word) { return word.value; }
