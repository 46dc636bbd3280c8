"""Products, sums and transposes of sparse matrices by the compiled library."""

from __future__ import annotations

from ctypes import c_int32, c_int64

import numpy as np

from engines.arrays import FloatArray, IndexArray, index_dtype
from engines.host.compiled.library import (
    DOUBLES,
    INDICES,
    Array,
    Function,
    HostMatrix,
    doubles,
    indices,
)
from engines.host.compiled.shares import Shares, even_shares
from engines.model.csr import CsrMatrix

_EITHER = Array(np.int32, np.int64)


_ADD_PRODUCT = Function(
    "pg_add_product",
    None,
    *(HostMatrix, INDICES, c_int64, c_int32, c_int64),
    *(DOUBLES, DOUBLES),
)
_SUMS_BESIDE_DIAGONAL = Function(
    "pg_sums_beside_diagonal", None, HostMatrix, INDICES, c_int64, c_int32, DOUBLES
)
_TRANSPOSE = Function("pg_transpose", None, HostMatrix, c_int64, INDICES, _EITHER, c_int32, DOUBLES)
_COLLECT = Function(
    "pg_collect",
    c_int64,
    *(c_int64, c_int64, INDICES, INDICES, DOUBLES),
    *(INDICES, INDICES, DOUBLES),
)


class Product:
    """A matrix that multiplies vectors; the entries of a row are added in their order.

    Parameters
    ----------
    matrix
        The matrix; its arrays are shared.
    """

    def __init__(self, matrix: CsrMatrix) -> None:
        self._rows, self._columns = matrix.num_rows, matrix.num_columns
        self._matrix = HostMatrix.of(matrix)
        self._shares = Shares(matrix.row_offsets, matrix.num_rows)

    def __matmul__(self, vectors: FloatArray) -> FloatArray:
        """Return the product with one vector, shape (columns,), or with several, (columns, k)."""
        return self.added(vectors, np.zeros((self._rows, *vectors.shape[1:])))

    def into(self, vectors: FloatArray, product: FloatArray) -> FloatArray:
        """Write the product over an array, which is returned.

        Parameters
        ----------
        vectors
            Shape (columns,) or (columns, k).
        product
            Shape (rows,) or (rows, k), contiguous.
        """
        product.fill(0.0)
        return self.added(vectors, product)

    def added(self, vectors: FloatArray, product: FloatArray) -> FloatArray:
        """Add the product to an array, which is returned.

        Parameters
        ----------
        vectors, product
            As in `into`; what is there comes before the first entry of a row.

        Raises
        ------
        ValueError
            If a shape does not fit the matrix.
        """
        if vectors.shape[0] != self._columns or product.shape != (self._rows, *vectors.shape[1:]):
            raise ValueError(
                f"({self._rows}, {self._columns}) times {vectors.shape} into {product.shape}"
            )
        width = 1 if vectors.ndim == 1 else vectors.shape[1]
        shares = self._shares
        how = (shares.bounds, shares.pieces, shares.threads, width)
        _ADD_PRODUCT(self._matrix, *how, doubles(vectors), product)
        return product


def sums_beside_diagonal(matrix: CsrMatrix) -> FloatArray:
    """Return Σ_{j≠i} a_ij for each row i, shape (rows,).

    Parameters
    ----------
    matrix
        The matrix.
    """
    sums: FloatArray = np.empty(matrix.num_rows)
    shares = even_shares(matrix.num_rows, matrix.num_entries)
    _SUMS_BESIDE_DIAGONAL(HostMatrix.of(matrix), *shares, sums)
    return sums


def transposed(matrix: CsrMatrix, values: FloatArray) -> CsrMatrix:
    """Return the transpose of a matrix with other values, columns ascending in each row.

    Parameters
    ----------
    matrix
        Where the entries lie.
    values
        Shape (entries,).
    """
    entries, width = matrix.num_entries, matrix.num_columns
    starts = np.empty(width + 1, dtype=np.int64)
    rows: IndexArray = np.empty(entries, dtype=index_dtype(matrix.num_rows))
    moved: FloatArray = np.empty(entries)
    given = CsrMatrix(matrix.row_offsets, matrix.columns, values, width)
    _TRANSPOSE(HostMatrix.of(given), width, starts, rows, rows.dtype.itemsize == 8, moved)
    offsets = starts.astype(index_dtype(entries), copy=False)
    return CsrMatrix(offsets, rows, moved, matrix.num_rows)


def from_entries(
    rows: IndexArray, columns: IndexArray, values: FloatArray, num_columns: int, num_rows: int
) -> CsrMatrix:
    """Return the matrix of entries in any order; those of one place are added up as they come.

    Parameters
    ----------
    rows, columns, values
        Shape (entries,).
    num_columns, num_rows
        The matrix's shape.

    Raises
    ------
    MemoryError
        If there is no room to sort them.
    """
    count = len(values)
    starts = np.empty(num_rows + 1, dtype=np.int64)
    sorted_columns, sums = np.empty(count, dtype=np.int64), np.empty(count)
    given = (indices(rows), indices(columns), doubles(values))
    left = int(_COLLECT(num_rows, count, *given, starts, sorted_columns, sums))
    if left < 0:
        raise MemoryError(f"sorting {count} entries: out of memory")
    kind = index_dtype(max(left, num_columns))
    return CsrMatrix(
        starts.astype(kind, copy=False),
        sorted_columns[:left].astype(kind),
        sums[:left].copy(),
        num_columns,
    )
