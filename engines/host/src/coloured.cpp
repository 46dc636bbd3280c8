// Gauss-Seidel in colours, x' <- (1 - w) x + w (b + A x): systems arranged for it, and its sweeps.
#include <cmath>

#include "change.hpp"
#include "system.hpp"
#include "team.hpp"

using prism_gpu::Change;
using prism_gpu::Index;

namespace {

// A row's entries before `fresh_ends[row]` read states of earlier colours.
template <class System>
struct Reads {
    const System& system;
    const typename decltype(System::matrix)::OffsetType* fresh_ends;
    const double* x;
    double* x_new;

    double row_sum(Index row) const {
        const auto& matrix = system.matrix;
        double total = system.offset ? system.offset[row] : 0.0;
        Index entry = matrix.begin(row), fresh_end = fresh_ends[row], end = matrix.end(row);
        for (; entry < fresh_end; entry++) total += matrix.value(entry) * x_new[matrix.columns[entry]];
        for (; entry < end; entry++) total += matrix.value(entry) * x[matrix.columns[entry]];
        return total;
    }
};

struct Only {
    template <class System>
    double operator()(const Reads<System>& reads, Index row) const {
        double total = reads.row_sum(row), omega = reads.system.omega;
        return omega == 1.0 ? total : (1.0 - omega) * reads.x[row] + omega * total;
    }
};

template <bool minimise>
struct Best {
    template <class System>
    double operator()(const Reads<System>& reads, Index group) const {
        double best = minimise ? HUGE_VAL : -HUGE_VAL;
        Index behind = reads.system.groups[group + 1];
        for (Index row = reads.system.groups[group]; row < behind; row++) {
            double total = reads.row_sum(row);
            best = (minimise ? total < best : total > best) ? total : best;
        }
        return best;
    }
};

// Computes the states from `first` to before `behind`, of one colour; returns the largest change.
template <class System, class Rows>
double sweep(const Reads<System>& reads, Index first, Index behind, const Rows& rows, bool absolute) {
    Change change{absolute};
    for (Index state = first; state < behind; state++) {
        double after = rows(reads, state);
        reads.x_new[state] = after;
        change.see(reads.x[state], after);
    }
    return change.largest;
}

}  // namespace

// Makes a sweep for each of `changes`, or until one changes less than `stop_below`; the vectors change
// places after each. Row or group i computes state i. fresh_ends: of the type of offsets, one a row.
// firsts: the first piece of each colour, and the end; starts: the first state of each piece, and the end.
extern "C" std::int64_t pg_coloured_sweeps(
    const PgSystem* given, const void* fresh_ends, const std::int64_t* firsts, std::int64_t colours,
    const std::int64_t* starts, std::int32_t threads, double* changes, std::int64_t sweeps, double stop_below,
    double* x, double* x_new, std::int32_t absolute) {
    return prism_gpu::with_types(*given, [&]<class System>(const System& system) {
        auto ends = static_cast<const typename decltype(System::matrix)::OffsetType*>(fresh_ends);
        auto repeat = [&](const auto& rows) {
            auto work = [&](Index made, Index piece) {
                bool turned = made % 2 != 0;
                Reads<System> reads{system, ends, turned ? x_new : x, turned ? x : x_new};
                return sweep(reads, starts[piece], starts[piece + 1], rows, absolute != 0);
            };
            return prism_gpu::repeated_in_phases(threads, firsts, colours, changes, sweeps, stop_below, work);
        };
        if (!system.groups) return repeat(Only{});
        return system.minimise ? repeat(Best<true>{}) : repeat(Best<false>{});
    });
}

namespace {

// Row `row` of the result is row `rows[row]` of the matrix, with entries for fresh values first.
template <class Matrix, class Position, class Offset>
void arrange_row(
    const Matrix& matrix, Index old, Index first_stale, const Position* position, Index place, Offset& fresh_end,
    Position* columns, double* values) {
    auto put = [&](bool fresh) {
        for (Index entry = matrix.begin(old); entry < matrix.end(old); entry++) {
            Position column = position[matrix.columns[entry]];
            if ((column < first_stale) != fresh) continue;
            columns[place] = column;
            values[place++] = matrix.value(entry);
        }
    };
    put(true);
    fresh_end = static_cast<Offset>(place);
    put(false);
}

}  // namespace

// Writes rows in another order and with other columns. bounds: where the pieces of rows start that threads
// share out, and the end; first_stale: columns of a row below this are fresh; offsets, fresh_ends: of the
// type of the matrix's; position: the new number of each column, of the type of the new columns.
extern "C" void pg_arrange(
    const PgMatrix* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads,
    const std::int64_t* rows, const std::int64_t* first_stale, const void* position, std::int32_t wide_position,
    const void* offsets, void* fresh_ends, void* columns, double* values) {
    prism_gpu::with_types(*given, [&]<class Matrix>(const Matrix& matrix) {
        using Offset = typename Matrix::OffsetType;
        auto begins = static_cast<const Offset*>(offsets);
        auto ends = static_cast<Offset*>(fresh_ends);
        auto arrange = [&]<class Position>(const Position* new_number, Position* new_columns) {
            prism_gpu::Team(threads).share(pieces, [&](Index piece) {
                for (Index row = bounds[piece]; row < bounds[piece + 1]; row++)
                    arrange_row(
                        matrix, rows[row], first_stale[row], new_number, begins[row], ends[row], new_columns, values);
            });
        };
        using std::int32_t, std::int64_t;
        if (wide_position)
            arrange(static_cast<const int64_t*>(position), static_cast<int64_t*>(columns));
        else
            arrange(static_cast<const int32_t*>(position), static_cast<int32_t*>(columns));
    });
}
