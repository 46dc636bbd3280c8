"""LU of sparse matrices: SciPy's SuperLU, without the rest of SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.cpu.scipy_extensions import extension
from engines.cpu.sparse_tools import transposed
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray

MODULE = "scipy.sparse.linalg._dsolve._superlu"


class SparseFactors:
    """LU factors of a sparse matrix, those of `scipy.sparse.linalg.splu` to the last bit.

    Parameters
    ----------
    matrix
        Square; the columns of each row ascend, and none comes twice.

    Raises
    ------
    RuntimeError
        If the matrix is singular.
    """

    def __init__(self, matrix: CsrMatrix) -> None:
        by_columns = transposed(matrix, matrix.values)
        indices = (by_columns.columns, by_columns.row_offsets)
        narrow = (np.ascontiguousarray(array, dtype=np.intc) for array in indices)
        self._factors = _factors(matrix.num_rows, by_columns.values, *narrow)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return x with A x = b."""
        solution: FloatArray = self._factors.solve(right)
        return solution


def _factors(size: int, values: FloatArray, rows: IndexArray, offsets: IndexArray) -> Any:
    """Factorise a matrix by columns, as SciPy's `splu` does."""
    try:
        # What makes a matrix of a factor is not called unless one is asked for.
        return extension(MODULE).gstrf(
            size, len(values), values, rows, offsets, csc_construct_func=None, ilu=False, options={}
        )
    except (AttributeError, ImportError, TypeError):
        # SciPy promises to have this function, and not where it takes it from.
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        return splu(csc_array((values, rows, offsets), shape=(size, size)))
