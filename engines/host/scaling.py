"""From a matrix to the iteration matrix by the compiled library."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64
from dataclasses import replace

import numpy as np

from engines.arrays import IndexArray, index_dtype
from engines.host.compiled.library import DOUBLES, INDICES, Array, Function, HostMatrix
from engines.host.structures import HostSystem, shares_of
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import ROUNDING_OF_A_SUM, Scaling, SweepSystem

_EITHER = Array(np.int32, np.int64)
_SHARED = (INDICES, c_int64, c_int32)

_MEASURE_BALANCE = Function("pg_measure_balance", None, HostMatrix, DOUBLES, INDICES)
_BALANCE = Function("pg_balance", None, HostMatrix, DOUBLES, INDICES, _EITHER, c_int32, DOUBLES)
_MEASURE_DIAGONAL = Function(
    "pg_measure_diagonal", c_int64, HostSystem, *_SHARED, c_double, DOUBLES, INDICES
)
_DIVIDE = Function("pg_divide", None, HostSystem, *_SHARED, DOUBLES, INDICES, _EITHER, DOUBLES)


def scaled(system: SweepSystem) -> SweepSystem:
    """Return the system with its scaling applied, so that the engine sweeps the matrix as it is.

    Parameters
    ----------
    system
        A system with any scaling.
    """
    if system.scaling is Scaling.DIAGONAL:
        return _without_diagonal(system)
    if system.scaling is Scaling.BALANCE:
        return replace(system, matrix=balance_matrix(system.matrix), scaling=Scaling.NONE)
    return system


def balance_matrix(rates: CsrMatrix) -> CsrMatrix:
    """Return Jacobi's iteration matrix for π Q = 0, the transposed rates over the exit rates.

    Parameters
    ----------
    rates
        Rates or probabilities of one recurrent class, square; self-loops are left out.
    """
    size, host = rates.num_rows, HostMatrix.of(rates)
    exits, ends = np.empty(size), np.empty(size + 1, dtype=np.int64)
    _MEASURE_BALANCE(host, exits, ends)
    entries = int(ends[-1])
    offsets = ends.astype(index_dtype(entries))
    rows: IndexArray = np.empty(entries, dtype=index_dtype(size))
    quotients = np.empty(entries)
    _BALANCE(host, exits, ends, rows, rows.dtype.itemsize == 8, quotients)
    return CsrMatrix(offsets, rows, quotients, size)


def _without_diagonal(system: SweepSystem) -> SweepSystem:
    matrix, host, shares = system.matrix, HostSystem.of(system), shares_of(system)
    shared = (shares.bounds, shares.pieces, shares.threads)
    pivots, kept = np.empty(matrix.num_rows), np.empty(matrix.num_rows + 1, dtype=np.int64)
    if not _MEASURE_DIAGONAL(host, *shared, ROUNDING_OF_A_SUM, pivots, kept):
        return replace(system, scaling=Scaling.NONE)
    starts = np.cumsum(kept)
    entries = int(starts[-1])
    columns: IndexArray = np.empty(entries, dtype=host.matrix.column_type)
    quotients = np.empty(entries)
    _DIVIDE(host, *shared, pivots, starts, columns, quotients)
    with np.errstate(over="ignore"):
        # What overflows is told of where the solve ends.
        offset = None if system.offset is None else system.offset / pivots
    offsets = starts.astype(index_dtype(entries))
    reduced = CsrMatrix(offsets, columns, quotients, matrix.num_columns)
    return replace(system, matrix=reduced, offset=offset, scaling=Scaling.NONE)
