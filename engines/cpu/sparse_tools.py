"""SciPy's compiled loops over rows of sparse matrices, without the rest of SciPy."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.cpu.scipy_extensions import extension
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, index_dtype

_T = TypeVar("_T", bound=np.generic)

LOOPS = "scipy.sparse._sparsetools"


class CsrProduct:
    """A matrix that multiplies vectors; the sums are SciPy's to the last bit.

    Parameters
    ----------
    matrix
        The matrix; its arrays are shared.
    """

    def __init__(self, matrix: CsrMatrix) -> None:
        self._shape = (matrix.num_rows, matrix.num_columns)
        self._arrays = (*_indices(matrix), np.ascontiguousarray(matrix.values, dtype=np.float64))

    def __matmul__(self, vectors: FloatArray) -> FloatArray:
        """Return the product with one vector, shape (columns,), or with several, (columns, k)."""
        product = np.empty((self._shape[0], *vectors.shape[1:]))
        return self.into(vectors, product)

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
            As in `into`; the entries of a row are added in their order, behind what is there.
        """
        flat = np.ascontiguousarray(vectors).reshape(-1)
        if vectors.ndim == 1:
            _loops().csr_matvec(*self._shape, *self._arrays, flat, product)
        else:
            together = (*self._shape, vectors.shape[1])
            _loops().csr_matvecs(*together, *self._arrays, flat, product.reshape(-1))
        return product


def transposed(matrix: CsrMatrix, values: FloatArray) -> CsrMatrix:
    """Return the transpose of a matrix with other values, columns ascending in each row.

    Parameters
    ----------
    matrix
        Where the entries lie.
    values
        Shape (entries,).
    """
    offsets, columns = _indices(matrix)
    turned = np.empty(matrix.num_columns + 1, dtype=offsets.dtype)
    rows, moved = np.empty_like(columns), np.empty(len(columns))
    given = (offsets, columns, np.ascontiguousarray(values, dtype=np.float64))
    _loops().csr_tocsc(matrix.num_rows, matrix.num_columns, *given, turned, rows, moved)
    return CsrMatrix(turned, rows, moved, matrix.num_rows)


def row_sums(matrix: CsrMatrix) -> FloatArray:
    """Return the sum of each row, shape (rows,), its entries added one after the other.

    Parameters
    ----------
    matrix
        The matrix.
    """
    return CsrProduct(matrix) @ np.ones(matrix.num_columns)


def diagonal(matrix: CsrMatrix) -> FloatArray:
    """Return the sum of the entries of each row in its own column, shape (rows,).

    Parameters
    ----------
    matrix
        A square matrix.
    """
    found = np.zeros(matrix.num_rows)
    values = np.ascontiguousarray(matrix.values, dtype=np.float64)
    shape = (matrix.num_rows, matrix.num_columns)
    _loops().csr_diagonal(0, *shape, *_indices(matrix), values, found)
    return found


def gathered(
    offsets: IndexArray, rows: IndexArray, columns: IndexArray, values: NDArray[_T], total: int
) -> tuple[IndexArray, NDArray[_T]]:
    """Return the entries of some rows one after the other, columns and values.

    Parameters
    ----------
    offsets
        Shape (matrix rows + 1,): where each row's entries start.
    rows
        Row numbers, shape (selected,).
    columns, values
        Shape (entries,).
    total
        How many entries these rows have.
    """
    wide = offsets.dtype.itemsize > 4 or columns.dtype.itemsize > 4
    kind = np.int64 if wide else np.int32
    places = [np.ascontiguousarray(array, dtype=kind) for array in (rows, offsets, columns)]
    found: IndexArray = np.empty(total, dtype=kind)
    taken = np.empty(total, dtype=values.dtype)
    _loops().csr_row_index(len(rows), *places, np.ascontiguousarray(values), found, taken)
    return found, taken


def _indices(matrix: CsrMatrix) -> tuple[IndexArray, IndexArray]:
    """Return offsets and columns in one signed type, as the loops take them."""
    offsets, columns = matrix.row_offsets, matrix.columns
    wide = offsets.dtype.itemsize > 4 or columns.dtype.itemsize > 4
    kind = np.int64 if wide else np.int32
    return np.ascontiguousarray(offsets, dtype=kind), np.ascontiguousarray(columns, dtype=kind)


def from_entries(
    rows: IndexArray, columns: IndexArray, values: FloatArray, num_columns: int, num_rows: int
) -> CsrMatrix:
    """Return the matrix of entries in any order; those of one place are added up.

    Parameters
    ----------
    rows, columns, values
        Shape (entries,).
    num_columns, num_rows
        The matrix's shape.
    """
    kind = index_dtype(max(len(values), num_columns, num_rows))
    offsets, order = np.empty(num_rows + 1, dtype=kind), np.empty(len(values), dtype=kind)
    sorted_values, shape = np.empty(len(values)), (num_rows, num_columns)
    places = [np.ascontiguousarray(array, dtype=kind) for array in (rows, columns)]
    given = (*places, np.ascontiguousarray(values, dtype=np.float64))
    _loops().coo_tocsr(*shape, len(values), *given, offsets, order, sorted_values)
    _loops().csr_sort_indices(num_rows, offsets, order, sorted_values)
    _loops().csr_sum_duplicates(*shape, offsets, order, sorted_values)
    left = int(offsets[-1])
    return CsrMatrix(offsets, order[:left].copy(), sorted_values[:left].copy(), num_columns)


def _loops() -> Any:
    return extension(LOOPS)
