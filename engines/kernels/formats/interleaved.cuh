// Columns and values interleaved by slices of 32 rows.

#define CHUNKED
#define BATCH 8
#define MATRIX_PARAMETERS \
    SLICE_PARAMETERS, const int* __restrict__ columns, const REAL* __restrict__ values
#define MATRIX SLICES, columns, values

struct Matrix {
    Slices slices;
    const int* columns;
    const REAL* values;
};

typedef SliceHead Head;

struct Row {
    OFFSET first, tail, length;
};

struct Word {
    int column;
    REAL value;
};

__device__ Matrix opened(MATRIX_PARAMETERS) { return Matrix{{SLICES}, columns, values}; }

__device__ Head head_of(const Matrix& matrix, OFFSET number)
{
    return slice_head(matrix.slices, number);
}

__device__ Row row_of(const Matrix& matrix, const Head& head, OFFSET number, int)
{
    Reach reach = reach_of(matrix.slices, head, number);
    return Row{head.first, reach.tail, reach.length};
}

__device__ Word word_at(const Matrix& matrix, const Row& row, OFFSET k)
{
    OFFSET slot = slot_at(matrix.slices, row.first, row.tail, k);
    return Word{__ldcs(matrix.columns + slot), __ldcs(matrix.values + slot)};
}

__device__ int column_of(const Matrix&, const Row&, const Word& word) { return word.column; }

__device__ double value_of(const Matrix&, const Word& word) { return word.value; }
