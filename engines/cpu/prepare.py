"""From a matrix to the iteration matrix, on the host."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.cpu import sparse_tools
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, MaskArray, index_dtype, row_sums
from engines.system import Scaling, SweepSystem

LOOPS_ENTRIES = 1 << 22
"""From so many entries on, numba's loops save more of the time of NumPy's passes, nine tenths, than
loading them takes."""

COMPILE_ENTRIES = 1 << 24
"""The same where they are yet to be compiled."""


def scaled(system: SweepSystem) -> SweepSystem:
    """Return the system with its scaling applied, so that the engine sweeps the matrix as it is.

    Large systems are scaled by numba's loops, which give the same to the last bit.

    Parameters
    ----------
    system
        A system with any scaling.
    """
    if system.scaling is not Scaling.NONE and _repays_loops(system.matrix.num_entries):
        from engines.cpu.prepare_kernels import scaled_by_loops

        return scaled_by_loops(system)
    return scaled_by_arrays(system)


def scaled_by_arrays(system: SweepSystem) -> SweepSystem:
    """Return what `scaled` does, made by NumPy and SciPy.

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


def _repays_loops(entries: int) -> bool:
    if entries < LOOPS_ENTRIES:
        return False
    from engines.cpu import prepare_kernels

    return entries >= COMPILE_ENTRIES or prepare_kernels.are_ready()


def _without_diagonal(system: SweepSystem) -> SweepSystem:
    matrix = system.matrix
    row = matrix.row_of_entry()
    state = row if system.states is None else system.states[row]
    diagonal = matrix.columns == state
    pivot = 1.0 - row_sums(row[diagonal], matrix.values[diagonal], matrix.num_rows)
    # A state that only loops has nothing to divide by; PRISM puts 1 there.
    pivot[pivot <= 0.0] = 1.0
    keep = ~diagonal
    reduced = _from_entries(row[keep], matrix, keep, matrix.values[keep] / pivot[row[keep]])
    offset = None if system.offset is None else system.offset / pivot
    return replace(system, matrix=reduced, offset=offset, scaling=Scaling.NONE)


def _from_entries(
    row: IndexArray, matrix: CsrMatrix, keep: MaskArray, values: FloatArray
) -> CsrMatrix:
    offsets = np.zeros(matrix.num_rows + 1, dtype=index_dtype(len(values)))
    np.cumsum(np.bincount(row, minlength=matrix.num_rows), out=offsets[1:])
    return CsrMatrix(offsets, matrix.columns[keep], values, matrix.num_columns)


def off_diagonal_row_sums(rates: CsrMatrix) -> FloatArray:
    """Return Σ_{j≠i} r_ij for each row i, shape (rows,)."""
    loops = np.flatnonzero(sparse_tools.diagonal(rates))
    sums = sparse_tools.row_sums(rates)
    if len(loops):
        # What is left beside a large entry is added up, not subtracted.
        rest = rates.select_rows(loops)
        row = rest.row_of_entry()
        off = rest.columns != loops[row]
        sums[loops] = row_sums(row[off], rest.values[off], len(loops))
    return sums


def balance_matrix(rates: CsrMatrix) -> CsrMatrix:
    """Return Jacobi's iteration matrix for π Q = 0, the transposed rates over the exit rates.

    Parameters
    ----------
    rates
        Rates or probabilities of one recurrent class, square; self-loops are left out.
    """
    exits = off_diagonal_row_sums(rates)
    exits[exits == 0.0] = 1.0
    row = rates.row_of_entry()
    keep = rates.columns != row
    values = rates.values[keep] / exits[rates.columns[keep]]
    return sparse_tools.transposed(_from_entries(row[keep], rates, keep, values), values)
