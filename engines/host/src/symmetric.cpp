// Sweeps of symmetric Gauss-Seidel, x' <- (1 - w) x + w A x: rows in order, and against it by turns.
#include <algorithm>

#include "change.hpp"
#include "matrix.hpp"
#include "team.hpp"

using prism_gpu::Change;
using prism_gpu::Index;

namespace {

// Rows `first` to before `behind` read each other's new values, and those that the others had before.
struct Piece {
    Index first, behind;
    const double* x;
    double* x_new;

    template <bool whole>
    double read(Index column) const {
        if (whole) return x_new[column];
        bool inside = first <= column && column < behind;
        return (inside ? x_new : x)[column];
    }
};

// Returns the largest change of a piece. whole: whether it is all there is.
template <bool whole, bool backwards, bool relaxed, class Matrix>
double sweep(const Matrix& matrix, Piece piece, double omega, bool absolute) {
    Change change{absolute};
    std::copy(piece.x + piece.first, piece.x + piece.behind, piece.x_new + piece.first);
    Index size = piece.behind - piece.first;
    for (Index done = 0; done < size; done++) {
        Index row = backwards ? piece.behind - 1 - done : piece.first + done;
        double total = 0.0;
        for (Index entry = matrix.begin(row); entry < matrix.end(row); entry++)
            total += matrix.value(entry) * piece.read<whole>(matrix.columns[entry]);
        double before = piece.x_new[row];
        double after = relaxed ? (1.0 - omega) * before + omega * total : total;
        piece.x_new[row] = after;
        change.see(before, after);
    }
    return change.largest;
}

template <bool whole, bool backwards, class Matrix>
double sweep(const Matrix& matrix, Piece piece, double omega, bool absolute) {
    if (omega == 1.0) return sweep<whole, backwards, false>(matrix, piece, omega, absolute);
    return sweep<whole, backwards, true>(matrix, piece, omega, absolute);
}

template <bool whole, class Matrix>
double sweep(const Matrix& matrix, Piece piece, bool backwards, double omega, bool absolute) {
    if (backwards) return sweep<whole, true>(matrix, piece, omega, absolute);
    return sweep<whole, false>(matrix, piece, omega, absolute);
}

}  // namespace

// Makes a sweep for each of `changes`, or until one changes less than `stop_below`; the vectors change
// places after each. bounds: where the pieces of rows start, and the end of the last. begun: how many sweeps
// were made before; every other one goes backwards.
extern "C" std::int64_t pg_symmetric_sweeps(
    const PgMatrix* given, const std::int64_t* bounds, std::int64_t pieces, std::int32_t threads, double omega,
    std::int64_t begun, double* changes, std::int64_t sweeps, double stop_below, double* x, double* x_new,
    std::int32_t absolute) {
    return prism_gpu::with_types(*given, [&](const auto& matrix) {
        return prism_gpu::repeated(threads, pieces, changes, sweeps, stop_below, [&](Index made, Index which) {
            bool backwards = (begun + made) % 2 != 0, turned = made % 2 != 0;
            Piece piece{bounds[which], bounds[which + 1], turned ? x_new : x, turned ? x : x_new};
            if (pieces == 1) return sweep<true>(matrix, piece, backwards, omega, absolute != 0);
            return sweep<false>(matrix, piece, backwards, omega, absolute != 0);
        });
    });
}
