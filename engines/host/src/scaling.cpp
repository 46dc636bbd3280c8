// From a matrix to the iteration matrix: Jacobi for x = A x + b, and for the balance equations.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "system.hpp"
#include "team.hpp"

using prism_gpu::Index;
using prism_gpu::Team;

namespace {

// Where column j's entries go moves on in `cursors` with each that is put there.
template <class Matrix, class Target>
void turn(const Matrix& rates, const double* exits, std::int64_t* cursors, Target* rows, double* quotients) {
    for (Index row = 0; row < rates.rows; row++)
        for (Index entry = rates.begin(row); entry < rates.end(row); entry++) {
            Index column = rates.columns[entry];
            if (column == row) continue;
            Index place = cursors[column]++;
            rows[place] = static_cast<Target>(row);
            quotients[place] = rates.value(entry) / exits[column];
        }
}

}  // namespace

// Of a square matrix of rates: what leaves each state, 1 where nothing does, and where each column's
// entries begin, and the last end; the diagonal counts for neither.
extern "C" void pg_measure_balance(const PgMatrix* given, double* exits, std::int64_t* ends) {
    prism_gpu::with_types(*given, [&](const auto& rates) {
        std::fill(ends, ends + rates.rows + 1, 0);
        for (Index row = 0; row < rates.rows; row++) {
            double total = 0.0;
            for (Index entry = rates.begin(row); entry < rates.end(row); entry++) {
                Index column = rates.columns[entry];
                if (column == row) continue;
                total += rates.value(entry);
                ends[column + 1]++;
            }
            exits[row] = total != 0.0 ? total : 1.0;
        }
        std::partial_sum(ends, ends + rates.rows + 1, ends);
    });
}

// The transpose over the exits; `cursors` are the ends of pg_measure_balance, and are moved on.
extern "C" void pg_balance(
    const PgMatrix* given, const double* exits, std::int64_t* cursors, void* rows, std::int32_t wide,
    double* quotients) {
    prism_gpu::with_types(*given, [&](const auto& rates) {
        if (wide) turn(rates, exits, cursors, static_cast<std::int64_t*>(rows), quotients);
        else turn(rates, exits, cursors, static_cast<std::int32_t*>(rows), quotients);
    });
}

// 1 less the diagonal of each row, 1 where nothing else is left, and behind a 0 how many entries lie
// beside it. `tolerance`: by how much a row that adds up to 1 may miss it, whose other entries then
// are what leaves. Returns how many entries lie on the diagonal.
extern "C" std::int64_t pg_measure_diagonal(
    const PgSystem* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, double tolerance,
    double* pivots, std::int64_t* kept) {
    std::atomic<Index> found{0};
    prism_gpu::with_types(*given, [&](const auto& system) {
        const auto& matrix = system.matrix;
        kept[0] = 0;
        Team(threads).share(pieces, [&](Index piece) {
            Index here = 0;
            for (Index row = bounds[piece]; row < bounds[piece + 1]; row++) {
                double diagonal = 0.0, others = 0.0;
                Index state = system.state_of(row), beside = 0;
                for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) {
                    if (static_cast<Index>(matrix.columns[entry]) == state) {
                        diagonal += matrix.value(entry);
                    } else {
                        others += matrix.value(entry);
                        beside++;
                    }
                }
                bool whole = diagonal != 0.0 && std::fabs(others + diagonal - 1.0) <= tolerance;
                double pivot = whole ? others : 1.0 - diagonal;
                // A state that only loops has nothing to divide by; PRISM puts 1 there.
                pivots[row] = pivot > 0.0 ? pivot : 1.0;
                kept[row + 1] = beside;
                here += matrix.end(row) - matrix.begin(row) - beside;
            }
            found += here;
        });
    });
    return found;
}

// The rows without their diagonal, over their pivots. starts: where each row's entries go.
extern "C" void pg_divide(
    const PgSystem* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, const double* pivots,
    const std::int64_t* starts, void* columns, double* quotients) {
    prism_gpu::with_types(*given, [&]<class Matrix>(const prism_gpu::System<Matrix>& system) {
        const auto& matrix = system.matrix;
        auto to = static_cast<typename Matrix::ColumnType*>(columns);
        Team(threads).share(pieces, [&](Index piece) {
            for (Index row = bounds[piece]; row < bounds[piece + 1]; row++) {
                Index place = starts[row], state = system.state_of(row);
                for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++) {
                    if (static_cast<Index>(matrix.columns[entry]) == state) continue;
                    to[place] = matrix.columns[entry];
                    quotients[place++] = matrix.value(entry) / pivots[row];
                }
            }
        });
    });
}
