"""From a matrix to the iteration matrix in numba: that of `engines.cpu.prepare`, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.cpu.compiled import are_compiled
from engines.cpu.kernels import use_threads
from engines.formats.csr import INT32_MAX, CsrMatrix, FloatArray, IndexArray, index_dtype
from engines.system import ROUNDING_OF_A_SUM, Scaling, SweepSystem

# isort: split
# `engines.cpu.kernels` sets what OpenMP reads when numba loads it.
from numba import njit, prange


def are_ready() -> bool:
    """Return whether these loops need not be compiled first."""
    return are_compiled(_measure, _turn, _count_diagonal, _measure_diagonal, _divide)


def scaled_by_loops(system: SweepSystem) -> SweepSystem:
    """Return the system with its scaling applied; see `engines.cpu.prepare.scaled`.

    Parameters
    ----------
    system
        A system with any scaling.
    """
    use_threads(system.matrix.num_entries)
    if system.scaling is Scaling.DIAGONAL:
        return _without_diagonal(system)
    if system.scaling is Scaling.BALANCE:
        return replace(system, matrix=_balanced(system.matrix), scaling=Scaling.NONE)
    return system


def _balanced(rates: CsrMatrix) -> CsrMatrix:
    size, given = rates.num_rows, (rates.row_offsets, rates.columns)
    exits, ends = np.ones(size), np.zeros(size + 1, dtype=np.int64)
    _measure(*given, rates.values, exits, ends)
    entries = int(ends[-1])
    # SciPy's loops, which `engines.cpu.prepare` uses, have one type for all indices.
    wide = entries > INT32_MAX or rates.columns.dtype.itemsize > 4
    kind = np.int64 if wide else np.int32
    columns: IndexArray = np.empty(entries, dtype=kind)
    offsets: IndexArray = ends.astype(kind)
    values = np.empty(entries)
    _turn(*given, rates.values, exits, ends, columns, values)
    return CsrMatrix(offsets, columns, values, size)


@njit(cache=True)
def _measure(
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    exits: FloatArray,
    ends: IndexArray,
) -> None:
    """Write each row's sum, where that is not 0, and where each column begins and the last ends.

    The diagonal counts for neither.
    """
    for row in range(len(offsets) - 1):
        total = 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            if columns[entry] != row:
                total += values[entry]
                ends[columns[entry] + 1] += 1
        if total != 0.0:
            exits[row] = total
    for column in range(len(ends) - 1):
        ends[column + 1] += ends[column]


@njit(cache=True, error_model="numpy")
def _turn(
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    exits: FloatArray,
    cursors: IndexArray,
    turned: IndexArray,
    quotients: FloatArray,
) -> None:
    for row in range(len(offsets) - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            column = columns[entry]
            if column != row:
                place = cursors[column]
                turned[place] = row
                quotients[place] = values[entry] / exits[column]
                cursors[column] = place + 1


def _without_diagonal(system: SweepSystem) -> SweepSystem:
    matrix, states = system.matrix, system.states
    if states is None:
        states = np.arange(matrix.num_rows, dtype=index_dtype(matrix.num_rows))
    narrow = matrix.row_offsets.dtype == index_dtype(matrix.num_entries)
    if narrow and not _count_diagonal(matrix.row_offsets, matrix.columns, states):
        return replace(system, scaling=Scaling.NONE)
    given = (matrix.row_offsets, matrix.columns, matrix.values, states)
    pivots, ends = np.ones(matrix.num_rows), np.zeros(matrix.num_rows + 1, dtype=np.int64)
    _measure_diagonal(*given, pivots, ends)
    np.cumsum(ends, out=ends)
    entries = int(ends[-1])
    columns, values = np.empty(entries, dtype=matrix.columns.dtype), np.empty(entries)
    _divide(*given, pivots, ends, columns, values)
    offsets = ends.astype(index_dtype(entries))
    offset = None if system.offset is None else system.offset / pivots
    reduced = CsrMatrix(offsets, columns, values, matrix.num_columns)
    return replace(system, matrix=reduced, offset=offset, scaling=Scaling.NONE)


@njit(parallel=True, cache=True)
def _count_diagonal(offsets: IndexArray, columns: IndexArray, states: IndexArray) -> int:
    count = 0
    for row in prange(len(offsets) - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            if columns[entry] == states[row]:
                count += 1
    return count


@njit(parallel=True, cache=True)
def _measure_diagonal(
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    states: IndexArray,
    pivots: FloatArray,
    kept: IndexArray,
) -> None:
    """Write 1 less each row's diagonal, and behind a 0 how many entries it has beside that."""
    for row in prange(len(offsets) - 1):
        diagonal, others = 0.0, 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            if columns[entry] == states[row]:
                diagonal += values[entry]
            else:
                others += values[entry]
                kept[row + 1] += 1
        # A state that only loops has nothing to divide by; PRISM puts 1 there.
        whole = diagonal != 0.0 and abs(others + diagonal - 1.0) <= ROUNDING_OF_A_SUM
        pivot = others if whole else 1.0 - diagonal
        if pivot > 0.0:
            pivots[row] = pivot


@njit(parallel=True, cache=True, error_model="numpy")
def _divide(
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    states: IndexArray,
    pivots: FloatArray,
    new_offsets: IndexArray,
    new_columns: IndexArray,
    quotients: FloatArray,
) -> None:
    for row in prange(len(offsets) - 1):
        place = new_offsets[row]
        for entry in range(offsets[row], offsets[row + 1]):
            if columns[entry] != states[row]:
                new_columns[place] = columns[entry]
                quotients[place] = values[entry] / pivots[row]
                place += 1
