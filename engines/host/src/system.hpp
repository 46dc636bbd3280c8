// What a sweep computes besides products: rewards, the best choice, which state a row is of.
#pragma once

#include "matrix.hpp"

// `HostSystem` of engines/host/compiled/library.py; null pointers stand for the usual.
struct PgSystem {
    PgMatrix matrix;
    const void* groups;    // of the type of offsets: where each state's choices start; null for one each
    const void* states;    // of the type of columns: the state of each row or group; null for its number
    const double* offset;  // b, one a row; null for 0
    double omega;          // relaxation of systems without choices
    std::int32_t minimise;
};

namespace prism_gpu {

template <class Matrix, class Real = double>
struct System {
    using MatrixType = Matrix;
    Matrix matrix;
    const typename Matrix::OffsetType* groups;
    const typename Matrix::ColumnType* states;
    const Real* offset;
    double omega;
    bool minimise;

    Index first_row(Index unit) const { return groups ? static_cast<Index>(groups[unit]) : unit; }
    Index state_of(Index unit) const { return states ? static_cast<Index>(states[unit]) : unit; }
};

// Calls a generic function with the system in the types that its matrix has.
template <class Function>
auto with_types(const PgSystem& system, Function function) {
    return with_types(system.matrix, [&]<class Matrix>(const Matrix& matrix) {
        return function(System<Matrix>{
            matrix, static_cast<const typename Matrix::OffsetType*>(system.groups),
            static_cast<const typename Matrix::ColumnType*>(system.states), system.offset, system.omega,
            system.minimise != 0});
    });
}

}  // namespace prism_gpu
