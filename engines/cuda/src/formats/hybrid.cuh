// The hybrid representation itself: a row is found in shared blocks by the jobs of its strip. The
// diagonal is left out where `without_diagonal` says so, and the scale of a row is kept apart.

#ifndef UNCHUNKED
#define CHUNKED
#endif
#define OWN_SUMS
#define NOWHERE -1
#ifndef BATCH
#define BATCH 4
#endif
#define MATRIX_PARAMETERS JOBS_PARAMETERS, int without_diagonal, DIVISOR_PARAMETERS
#define MATRIX JOBS, without_diagonal, DIVISORS

struct Matrix {
    Jobs jobs;
    bool without_diagonal;
    Divisors divisors;
};

typedef OFFSET Head;  // where the row's divisor is

struct Row {
    Span span;
    int left_out;   // a column, or NOWHERE
    OFFSET length;  // the diagonal included; nothing computes it where nothing asks
    double scale;
};

__device__ Matrix opened(MATRIX_PARAMETERS)
{
    return Matrix{{JOBS}, without_diagonal != 0, {DIVISORS}};
}

__device__ Head head_of(const Matrix& matrix, OFFSET number)
{
    return divisor_place(matrix.divisors, number);
}

__device__ Row row_of(const Matrix& matrix, const Head& head, OFFSET, int state)
{
    Span span = span_of(matrix.jobs, state);
    OFFSET length = 0;
    for (int job = span.first; job < span.last; job++) {
        Run run = run_of(matrix.jobs, span, job);
        length += run.end - run.begin;
    }
    return Row{span, matrix.without_diagonal ? state : NOWHERE, length,
               scale_at(matrix.divisors, head)};
}

__device__ bool is_divided(const Matrix& matrix) { return matrix.divisors.reciprocals; }

// As in products.cuh.
__device__ double with_product(double sum, double value, double at);
__device__ double2 with_product(double2 sum, double value, double2 at);

// `sum` and the products of a row, added in the order of entries. They are taken by batches, from
// as many runs as that takes, so that the reads of x are on their way at a time; x gives a `Stored`
// for a column.
template <class Stored, class Vector, class Number>
__device__ Number with_all_products(const Matrix& matrix, const Row& row, const Vector& x,
                                    Number sum)
{
    const Span& span = row.span;
    if (span.first >= span.last) return sum;
    int job = span.first;
    Run run = run_of(matrix.jobs, span, job);
    Run next = run_of(matrix.jobs, span, min(job + 1, span.last - 1));
    do {
        int columns[BATCH];
        double values[BATCH];
        Stored read[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            while (run.begin >= run.end && job + 1 < span.last) {
                run = next;
                job++;
                next = run_of(matrix.jobs, span, min(job + 1, span.last - 1));
            }
            columns[b] = NOWHERE;
            if (run.begin < run.end) {
                double2 local = __ldg(matrix.jobs.local_entries + run.begin++);
                int column = run.column + (int)__double_as_longlong(local.y);
                if (column != row.left_out) columns[b] = column;
                values[b] = local.x;
            }
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            if (columns[b] != NOWHERE) read[b] = x[columns[b]];
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            if (columns[b] != NOWHERE) sum = with_product(sum, values[b], read[b]);
    } while (run.begin < run.end || job + 1 < span.last);
    return sum;
}

// `sum` and every `step`-th product of a row from entry `first` on.
template <class Stored, class Number>
__device__ Number with_products(const Matrix& matrix, const Row& row, OFFSET first, int step,
                                const Stored* x, Number sum)
{
    if (step == 1 && first == 0) return with_all_products<Stored>(matrix, row, x, sum);
    OFFSET left = first, stays = row.length;
    for_entries(matrix.jobs, row.span, [&](int column, double value) {
        if (stays-- <= 0 || left-- > 0) return;
        left = step - 1;
        if (column != row.left_out) sum = with_product(sum, value, x[column]);
    });
    return sum;
}
