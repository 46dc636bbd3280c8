// A row dictionary: a code of CODE type for each row; rows that share a pattern have the same pairs
// of a distance (column - state) and a value, and the same right-hand side if `givens` is there.
// The patterns lie in shared memory if STAGED.

#define CHUNKED
#define ALIKE
#define OWN_GIVENS
#define MATRIX_PARAMETERS \
    const CODE* __restrict__ codes, const OFFSET* __restrict__ starts, \
    const double2* __restrict__ pairs, const double* __restrict__ givens, int num_patterns, \
    int num_pairs
#define MATRIX codes, starts, pairs, givens, num_patterns, num_pairs

struct Matrix {
    const CODE* codes;
    const OFFSET* starts;
    const double2* pairs;  // whole: neighbours mostly share a pattern, so that one load serves all
    const double* givens;
};

typedef CODE Head;

struct Row {
    CODE code;
    OFFSET begin, length;
    int state;
};

typedef double2 Word;

__device__ Matrix opened(MATRIX_PARAMETERS)
{
#ifdef STAGED
    // Pairs, then right-hand sides, then starts: in the order of their alignment.
    double* numbers = (double*)(staged + num_pairs);
    OFFSET* begins = (OFFSET*)(numbers + (givens ? num_patterns : 0));
    Matrix here = {codes, copied(starts, num_patterns + 1, begins),
                   copied(pairs, num_pairs, staged),
                   givens ? copied(givens, num_patterns, numbers) : givens};
    __syncthreads();
    return here;
#else
    return Matrix{codes, starts, pairs, givens};
#endif
}

__device__ Head head_of(const Matrix& matrix, OFFSET number)
{
    return __ldcs(matrix.codes + number);
}

__device__ const Head* heads_of(MATRIX_PARAMETERS) { return codes; }

__device__ Row row_of(const Matrix& matrix, Head code, OFFSET, int state)
{
    OFFSET begin = matrix.starts[code];
    return Row{code, begin, matrix.starts[code + 1] - begin, state};
}

__device__ double given(const Matrix& matrix, const Row& row, const REAL* offset, OFFSET number)
{
    if (matrix.givens) return matrix.givens[row.code];
    return offset ? offset[number] : 0.0;
}

__device__ Word word_at(const Matrix& matrix, const Row& row, OFFSET k)
{
    return matrix.pairs[row.begin + k];
}

__device__ int column_of(const Matrix&, const Row& row, Word word)
{
    return row.state + distance_of(word);
}

__device__ double value_of(const Matrix&, Word word) { return value_of(word); }
