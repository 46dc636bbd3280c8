// Sparse matrices and systems as Python hands them over, and the types that loops are compiled for.
#pragma once

#include <cstdint>

namespace prism_gpu {

using Index = std::int64_t;

// Compressed sparse rows; `Offset` counts entries, rows and choices, `Column` numbers states.
template <class Offset, class Column>
struct Csr {
    using OffsetType = Offset;
    using ColumnType = Column;
    Index rows;
    const Offset* offsets;
    const Column* columns;
    const double* values;

    Index begin(Index row) const { return offsets[row]; }
    Index end(Index row) const { return offsets[row + 1]; }
    double value(Index entry) const { return values[entry]; }
};

}  // namespace prism_gpu

// `HostMatrix` of engines/host/compiled/library.py.
struct PgMatrix {
    std::int64_t rows;
    const void* offsets;
    const void* columns;
    const double* values;
    std::int32_t wide_offsets, wide_columns;  // 64 bits; wide columns come with wide offsets
};

namespace prism_gpu {

// Calls a generic function with the matrix in the types that it has.
template <class Function>
auto with_types(const PgMatrix& matrix, Function function) {
    auto call = [&]<class Offset, class Column>(const Offset* offsets, const Column* columns) {
        return function(Csr<Offset, Column>{matrix.rows, offsets, columns, matrix.values});
    };
    auto wide = static_cast<const std::int64_t*>(matrix.offsets);
    auto narrow_columns = static_cast<const std::int32_t*>(matrix.columns);
    if (matrix.wide_columns) return call(wide, static_cast<const std::int64_t*>(matrix.columns));
    if (matrix.wide_offsets) return call(wide, narrow_columns);
    return call(static_cast<const std::int32_t*>(matrix.offsets), narrow_columns);
}

}  // namespace prism_gpu
