"""LU of sparse matrices: SciPy's SuperLU, without the rest of SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.cpu.scipy_extensions import extension
from engines.cpu.sparse_tools import transposed
from engines.formats.csr import CsrMatrix, FloatArray

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
        entries = (matrix.num_rows, matrix.num_entries, by_columns.values, *narrow)
        # What makes a matrix of a factor is not called unless one is asked for.
        self._factors: Any = extension(MODULE).gstrf(
            *entries, csc_construct_func=None, ilu=False, options={}
        )

    def solve(self, right: FloatArray) -> FloatArray:
        """Return x with A x = b."""
        solution: FloatArray = self._factors.solve(right)
        return solution
