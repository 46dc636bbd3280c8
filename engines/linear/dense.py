"""LU factors of a small dense matrix, by NumPy's elementwise loops alone.

LAPACK's, as NumPy has it, runs on several threads from 100 unknowns on and then takes more than
two megabytes of the caller's stack (OpenBLAS 0.3.31). Solves run on threads of Java's, whose stack
is PRISM's `-javastack`, 4 MB or less: that crashes, or overwrites what lies below.
"""

from __future__ import annotations

import numpy as np

from engines.formats.csr import FloatArray


class DenseFactors:
    """Factors with partial pivoting: P A = L U.

    Parameters
    ----------
    matrix
        Square.

    Raises
    ------
    RuntimeError
        If a pivot is 0: the matrix is singular.
    """

    def __init__(self, matrix: FloatArray) -> None:
        both = matrix.copy()
        order = np.arange(len(both))
        for k in range(len(both)):
            pivot = k + int(np.argmax(np.abs(both[k:, k])))
            if both[pivot, k] == 0.0:
                raise RuntimeError("Factor is exactly singular")
            if pivot != k:
                both[[k, pivot]], order[[k, pivot]] = both[[pivot, k]], order[[pivot, k]]
            rows = k + 1 + np.flatnonzero(both[k + 1 :, k])
            both[rows, k] /= both[k, k]
            both[rows, k + 1 :] -= both[rows, k, None] * both[k, k + 1 :]
        self._both, self._order = both, order

    def solve(self, right: FloatArray) -> FloatArray:
        """Return x with A x = b.

        Parameters
        ----------
        right
            The vector b, shape (unknowns,).
        """
        both, x = self._both, right[self._order]
        for k in range(len(x)):
            x[k + 1 :] -= both[k + 1 :, k] * x[k]
        for k in range(len(x) - 1, -1, -1):
            x[k] /= both[k, k]
            x[:k] -= both[:k, k] * x[k]
        return x
