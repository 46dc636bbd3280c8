"""Sweeps of symmetric Gauss-Seidel by the compiled library."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64

from engines.arrays import FloatArray, IndexArray
from engines.host.compiled.library import DOUBLES, INDICES, Function, HostMatrix, indices
from engines.host.compiled.shares import check_bounds, require_vectors
from engines.model.csr import CsrMatrix

_SWEEPS = Function(
    "pg_symmetric_sweeps",
    c_int64,
    *(HostMatrix, INDICES, c_int64, c_int32, c_double, c_int64),
    *(DOUBLES, c_int64, c_double, DOUBLES, DOUBLES, c_int32),
)


class HostSymmetricSweeps:
    """Sweeps of x = A x between two vectors, in the order of the rows and against it by turns.

    Parameters
    ----------
    matrix
        A, shape (states, states).
    bounds
        Where the pieces of rows start, and the end of the last, shape (pieces + 1,). Rows read new
        values of their own piece, and those that other pieces had before the sweep.
    threads
        How many threads share out the pieces; the results are the same to the last bit.

    Raises
    ------
    ValueError
        If the matrix is not square or the pieces are not those of its rows.
    """

    def __init__(self, matrix: CsrMatrix, bounds: IndexArray, threads: int) -> None:
        if matrix.num_rows != matrix.num_columns:
            raise ValueError(f"{matrix.num_rows} rows, but {matrix.num_columns} columns")
        check_bounds(bounds, matrix.num_rows)
        self._matrix, self._bounds, self._threads = HostMatrix.of(matrix), indices(bounds), threads
        self._states = matrix.num_rows

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
        omega: float,
        begun: int,
        x: FloatArray,
        x_new: FloatArray,
        absolute: bool,
    ) -> int:
        """Make a sweep for each of `changes`, or until one changes less than `stop_below`.

        The vectors change places after each sweep. Returns how many were made.

        Parameters
        ----------
        changes
            Takes the largest change of each sweep, shape (sweeps,).
        stop_below
            Negative for never.
        omega
            Relaxation ω.
        begun
            How many sweeps were made before: every other one goes against the order of the rows.
        x, x_new
            Shape (states,): the iterate, and room for the next one.
        absolute
            Whether changes are absolute.

        Raises
        ------
        ValueError
            If a vector has another shape.
        """
        require_vectors(self._states, x, x_new)
        pieces = (self._bounds, len(self._bounds) - 1, self._threads, omega, begun)
        how = (changes, len(changes), stop_below, x, x_new, absolute)
        return int(_SWEEPS(self._matrix, *pieces, *how))
