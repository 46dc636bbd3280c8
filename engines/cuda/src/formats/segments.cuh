// Sums of segments, which another kernel has taken: a row is a segment of the entries, cut where a
// tile ends (D. Bosnacki, S. Edelkamp, D. Sulewski, A. Wijs, Parallel probabilistic model checking
// on general purpose graphics processors, 2011, Algorithm 6).

#define OWN_SUMS
#define TILE 1024
#define MATRIX_PARAMETERS const OFFSET* __restrict__ offsets, const double* __restrict__ sums
#define MATRIX offsets, sums

struct Matrix {
    const OFFSET* offsets;
    const double* sums;
};

struct Head {
    OFFSET begin, end;
};

struct Row {
    OFFSET begin, length;
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

// Sums are there where a row and where a tile starts; of the entries from `first` on, those of
// every `step`-th one are taken.
__device__ double with_products(const Matrix& matrix, const Row& row, OFFSET first, int step,
                                const double*, double sum)
{
    OFFSET begin = row.begin, end = begin + row.length;
    if (first == 0 && begin < end) sum += matrix.sums[begin];
    for (OFFSET tile = begin / TILE + 1; tile * TILE < end; tile++) {
        OFFSET behind = tile * TILE - begin - first;
        if (behind >= 0 && behind % step == 0) sum += matrix.sums[tile * TILE];
    }
    return sum;
}
