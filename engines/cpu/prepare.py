"""From a matrix to the iteration matrix, on the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from engines.cpu import sparse_tools
from engines.formats.csr import (
    CsrMatrix,
    FloatArray,
    IndexArray,
    distinct,
    index_dtype,
    row_sums,
)
from engines.system import Scaling, SweepSystem, pivots

LOOPS_ENTRIES = 1 << 22
"""From so many entries on, numba's loops save more of the time of NumPy's passes, nine tenths, than
loading them takes."""

COMPILE_ENTRIES = 1 << 24
"""The same where they are yet to be compiled."""

ENTRIES_AT_ONCE = 1 << 16
"""Arrays of so many entries stay in a cache: memory that is touched for the first time is slow."""


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
    loops, at = _loops(matrix, system.states)
    reduced = _without(matrix, loops, at)
    own = row_sums(at, matrix.values[loops], matrix.num_rows)
    others, looping = np.zeros(matrix.num_rows), distinct(at)
    others[looping] = reduced.select_rows(looping).row_sums()
    pivot = pivots(own, others)
    if len(loops):
        lengths = reduced.row_lengths()
        for rows, entries in _pieces(reduced):
            if np.any(pivot[rows] != 1.0):
                reduced.values[entries] /= np.repeat(pivot[rows], lengths[rows])
    offset = None if system.offset is None else system.offset / pivot
    return replace(system, matrix=reduced, offset=offset, scaling=Scaling.NONE)


def _loops(matrix: CsrMatrix, states: IndexArray | None) -> tuple[IndexArray, IndexArray]:
    """Return where the entries of states' own columns lie, and in which rows.

    Parameters
    ----------
    matrix
        The matrix.
    states
        The state of each row; None where they have the same numbers.
    """
    lengths, found = matrix.row_lengths(), [np.zeros(0, dtype=np.int64)]
    if states is None:
        states = np.arange(matrix.num_rows, dtype=matrix.columns.dtype)
    for rows, entries in _pieces(matrix):
        own = matrix.columns[entries] == np.repeat(states[rows], lengths[rows])
        found.append(np.flatnonzero(own) + entries.start)
    loops = np.concatenate(found)
    return loops, np.searchsorted(matrix.row_offsets, loops, side="right") - 1


def _pieces(matrix: CsrMatrix) -> Iterator[tuple[slice, slice]]:
    """Yield rows and their entries, few enough at a time to pass through a cache."""
    offsets = matrix.row_offsets
    cuts = np.searchsorted(offsets, np.arange(0, matrix.num_entries, ENTRIES_AT_ONCE))
    bounds = distinct(np.append(cuts, matrix.num_rows))
    for first, last in pairwise(bounds.tolist()):
        yield slice(first, last), slice(int(offsets[first]), int(offsets[last]))


def _without(matrix: CsrMatrix, loops: IndexArray, at: IndexArray) -> CsrMatrix:
    """Return a matrix without some entries, of which the rows are given; itself without none."""
    if not len(loops):
        return matrix
    keep = np.ones(matrix.num_entries, dtype=np.bool_)
    keep[loops] = False
    offsets = np.zeros(matrix.num_rows + 1, dtype=index_dtype(matrix.num_entries - len(loops)))
    np.cumsum(matrix.row_lengths() - np.bincount(at, minlength=matrix.num_rows), out=offsets[1:])
    return CsrMatrix(offsets, matrix.columns[keep], matrix.values[keep], matrix.num_columns)


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
    rest = _without(rates, *_loops(rates, None))
    values = np.take(exits, rest.columns)
    np.divide(rest.values, values, out=values)
    return sparse_tools.transposed(rest, values)
