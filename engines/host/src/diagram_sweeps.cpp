// Sweeps over shared blocks, x' <- (1 - w) x + w (b + A x / d), of slices of rows, colour by colour.
#include "change.hpp"
#include "hybrid.hpp"
#include "team.hpp"

using prism_gpu::Change;
using prism_gpu::Index;

// `HostDiagramRows` of engines/host/diagram_sweeps.py; null pointers stand for the usual.
struct PgDiagramRows {
    PgHybrid hybrid;
    std::int64_t rows;
    const std::uint32_t* states;  // the state of each row; null for its number
    const double* divisors;       // d, one a row; null for 1
    const double* offset;         // b, one a row; null for 0
    std::int32_t without_diagonal;
};

// Slices of consecutive rows, counted from the last if backwards; slice s has colour s mod `colours`.
//
// Each piece is every `colours`-th slice from `begins` on to before `ends`; a colour has the pieces from
// `firsts` to before the next. colour_of_state: of a state that no row computes, a number behind all
// colours; not read where there is one.
struct PgSlices {
    std::int64_t slices, size, colours;
    std::int32_t backwards, threads;
    const std::int64_t *firsts, *begins, *ends;
    const void* colour_of_state;
    std::int32_t wide;  // whether colours are of 32 bits, not of 16
};

namespace {

struct Old {
    const double* x;
    double operator()(Index column) const { return x[column]; }
};

// States of earlier colours have their new values.
template <class Colour>
struct Mixed {
    const double *x, *x_new;
    const Colour* colour_of_state;
    Colour colour;
    double operator()(Index column) const { return (colour_of_state[column] < colour ? x_new : x)[column]; }
};

struct Vectors {
    const double* x;
    double* x_new;
};

// Computes the rows from `row` to before `behind`.
template <bool without_diagonal, class Read>
void sweep_rows(
    const PgDiagramRows& given, Index row, Index behind, const Read& read, double omega, Vectors vectors,
    Change& change) {
    auto state_of = [&](Index which) { return given.states ? static_cast<Index>(given.states[which]) : which; };
    for (Index strip = prism_gpu::strip_of(given.hybrid, state_of(row)); row < behind; row++) {
        const Index state = state_of(row);
        strip = prism_gpu::strip_from(given.hybrid, strip, state);
        double total = 0.0;
        prism_gpu::for_entries(given.hybrid, strip, state, [&](Index column, double value) {
            if (without_diagonal && column == state) return;
            total += value * read(column);
        });
        if (given.divisors) total /= given.divisors[row];
        if (given.offset) total += given.offset[row];
        const double before = vectors.x[state];
        const double after = omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
        vectors.x_new[state] = after;
        change.see(before, after);
    }
}

// Computes the slices of a piece; returns the largest change.
template <class Read>
double sweep_piece(
    const PgDiagramRows& given, const PgSlices& slices, Index piece, const Read& read, double omega,
    Vectors vectors, bool absolute) {
    Change change{absolute};
    for (Index which = slices.begins[piece]; which < slices.ends[piece]; which += slices.colours) {
        const Index first = slices.size * (slices.backwards ? slices.slices - 1 - which : which);
        const Index behind = std::min<Index>(first + slices.size, given.rows);
        if (given.without_diagonal)
            sweep_rows<true>(given, first, behind, read, omega, vectors, change);
        else
            sweep_rows<false>(given, first, behind, read, omega, vectors, change);
    }
    return change.largest;
}

}  // namespace

// Makes a sweep for each of `changes`, or until one changes less than `stop_below`; the vectors change
// places after each. A row reads the states of earlier colours from the new vector, all others from the old.
extern "C" std::int64_t pg_diagram_sweeps(
    const PgDiagramRows* rows, const PgSlices* slices, double omega, double* changes, std::int64_t sweeps,
    double stop_below, double* x, double* x_new, std::int32_t absolute) {
    auto work = [&](Index made, Index piece) {
        const Index colour = slices->begins[piece] % slices->colours;
        const Vectors vectors = made % 2 ? Vectors{x_new, x} : Vectors{x, x_new};
        auto sweep = [&](const auto& read) {
            return sweep_piece(*rows, *slices, piece, read, omega, vectors, absolute != 0);
        };
        auto mixed = [&]<class Colour>(const Colour* colours) {
            return sweep(Mixed<Colour>{vectors.x, vectors.x_new, colours, static_cast<Colour>(colour)});
        };
        if (colour == 0) return sweep(Old{vectors.x});
        if (slices->wide) return mixed(static_cast<const std::uint32_t*>(slices->colour_of_state));
        return mixed(static_cast<const std::uint16_t*>(slices->colour_of_state));
    };
    return prism_gpu::repeated_in_phases(
        slices->threads, slices->firsts, slices->colours, changes, sweeps, stop_below, work);
}
