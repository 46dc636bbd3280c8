// Gauss-Seidel sweeps of x <- (1 - omega) x + omega (b + A x) in colours, over a matrix in the hybrid
// representation: one launch a colour.
//
// Rows are cut into slices of consecutive ones; slice s, counted from the last one if `backwards`,
// has colour s mod the number of colours (Ingaramo 2013, Implementacion del algoritmo Gauss-Seidel
// en CUDA para la verificacion simbolica de modelos probabilisticos, section 4.2.2). A row reads
// states of earlier colours from `x_new`, which this sweep has written, all others from `x`. A
// launch writes only its own colour: so the result does not depend on the order of the threads.

// A number that others below 2^31 are divided by: floor(n multiplier / 2^shift).
struct Divisor {
    unsigned multiplier;
    int shift;
};

__device__ int quotient(const Divisor& divisor, int number)
{
    return (int)((unsigned long long)number * divisor.multiplier >> divisor.shift);
}

struct Slices {
    const int* positions;  // the row of each state, or negative; null where row i is state i's
    int rows, size, count, colours;
    Divisor by_size, by_colours;
    bool backwards;
};

__device__ int slice_number(const Slices& slices, int number)
{
    return slices.backwards ? slices.count - 1 - number : number;
}

// The iterate as a colour sees it.
struct Mixed {
    const double* x;
    const double* x_new;
    const Slices& slices;
    int colour;

    __device__ double operator[](int column) const
    {
        return (is_fresh(column) ? x_new : x)[column];
    }

    __device__ bool is_fresh(int column) const
    {
        if (colour == 0) return false;
        int row = slices.positions ? __ldg(slices.positions + column) : column;
        if (row < 0) return false;
        int number = slice_number(slices, quotient(slices.by_size, row));
        return number - quotient(slices.by_colours, number) * slices.colours < colour;
    }
};

// One thread a row of the colour.
extern "C" __global__ void __launch_bounds__(256) sweep_rows_of_slices(
    MATRIX_PARAMETERS, const double* __restrict__ offset, const int* __restrict__ row_states,
    const int* __restrict__ positions, int rows, int slice_size, int slice_count, int backwards,
    int colour, int colours, unsigned size_multiplier, unsigned colours_multiplier, int size_shift,
    int colours_shift, double omega, const double* x, double* x_new, const double* before_slot,
    double* slot, double stop_below, int absolute)
{
    double previous = *before_slot;
    if (previous < stop_below) return pass_change_on(previous, slot);
    Matrix matrix = opened(MATRIX);
    Slices slices = {positions, rows, slice_size, slice_count, colours,
                     {size_multiplier, size_shift}, {colours_multiplier, colours_shift},
                     backwards != 0};
    long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long step = thread / slice_size;
    long long number = colour + step * colours;
    double change = 0.0;
    if (number < slice_count) {
        long long place = (long long)slice_number(slices, (int)number) * slice_size
            + (thread - step * slice_size);
        if (place < rows) {
            int at = (int)place, state = row_states ? row_states[at] : at;
            Row row = row_number(matrix, at, state);
            double total = with_all_products<double>(matrix, row, Mixed{x, x_new, slices, colour},
                                                     0.0);
            total = finished(row, total);
            if (offset) total += offset[at];
            double before = x[state];
            double after = omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
            change = store_fresh(x_new, state, before, after, absolute);
        }
    }
    record_colour(change, slot);
}
