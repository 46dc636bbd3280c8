// Sums of panels, which another kernel has taken: the states are cut into panels, and a row has a
// run of sums in each of them, one where its entries there begin and one for each tile they go over.

#ifndef REAL
#define REAL double
#endif

#define OWN_SUMS
#define MATRIX_PARAMETERS \
    const OFFSET* __restrict__ begins, const REAL* __restrict__ sums, int num_rows, int num_panels
#define MATRIX begins, sums, num_rows, num_panels

struct Matrix {
    const OFFSET* begins;  // of each row's run in the first panel, then in the second, and so on
    const REAL* sums;
    int num_rows;
    int num_panels;
};

struct Head {
    OFFSET begin, end;  // of the run in the first panel
};

struct Row {
    OFFSET begin, end;
    OFFSET number, length;
};

__device__ Matrix opened(MATRIX_PARAMETERS) { return Matrix{MATRIX}; }

__device__ Head head_of(const Matrix& matrix, OFFSET number)
{
    return Head{matrix.begins[number], matrix.begins[number + 1]};
}

__device__ Row row_of(const Matrix&, const Head& head, OFFSET number, int)
{
    return Row{head.begin, head.end, number, head.end - head.begin};
}

// The sums of a row, panel by panel. One thread takes them all.
__device__ REAL with_products(const Matrix& matrix, const Row& row, OFFSET, int, const REAL*,
                              REAL sum)
{
    OFFSET begin = row.begin, end = row.end;
    for (int panel = 1;; panel++) {
        // The next run is looked up before this one is added.
        OFFSET next_begin = 0, next_end = 0;
        if (panel < matrix.num_panels) {
            const OFFSET* place = matrix.begins + (OFFSET)panel * matrix.num_rows + row.number;
            next_begin = place[0];
            next_end = place[1];
        }
        for (; begin < end; begin++) sum += matrix.sums[begin];
        if (panel >= matrix.num_panels) return sum;
        begin = next_begin;
        end = next_end;
    }
}
