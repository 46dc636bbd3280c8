"""Gauss-Seidel in numba: rows in another order, sweeps in colours; imported only when wanted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from engines.cpu.kernels import chunk_bounds, use_threads
from engines.formats.csr import FloatArray, IndexArray

# isort: split
# `engines.cpu.kernels` sets what OpenMP reads when numba loads it.
from numba import njit, prange


def arranged_rows(
    rows: IndexArray,
    first_of_row: IndexArray,
    offsets: IndexArray,
    old_offsets: IndexArray,
    old_columns: IndexArray,
    old_values: FloatArray,
    position: IndexArray,
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return rows in another order and with other columns, entries for fresh values first.

    Parameters
    ----------
    rows
        Which row comes where, shape (rows,).
    first_of_row
        Columns below this are fresh, shape (rows,).
    offsets
        Where the rows will start, shape (rows + 1,).
    old_offsets, old_columns, old_values
        The matrix.
    position
        The new number of each column, shape (columns,).

    Returns
    -------
    Where the fresh entries of each row end, shape (rows,); columns and values, shape (entries,).
    """
    fresh_ends = np.empty(len(rows), dtype=offsets.dtype)
    columns = np.empty(len(old_columns), dtype=position.dtype)
    values = np.empty(len(old_values))
    use_threads(len(old_columns))
    _arrange(
        *(rows, first_of_row, offsets, old_offsets, old_columns, old_values, position),
        *(fresh_ends, columns, values),
    )
    return fresh_ends, columns, values


@njit(parallel=True, cache=True)
def _arrange(
    rows: IndexArray,
    first_of_row: IndexArray,
    offsets: IndexArray,
    old_offsets: IndexArray,
    old_columns: IndexArray,
    old_values: FloatArray,
    position: IndexArray,
    fresh_ends: IndexArray,
    columns: IndexArray,
    values: FloatArray,
) -> None:
    for row in prange(len(rows)):
        first, last = old_offsets[rows[row]], old_offsets[rows[row] + 1]
        place = offsets[row]
        for entry in range(first, last):
            column = position[old_columns[entry]]
            if column < first_of_row[row]:
                columns[place], values[place] = column, old_values[entry]
                place += 1
        fresh_ends[row] = place
        for entry in range(first, last):
            column = position[old_columns[entry]]
            if column >= first_of_row[row]:
                columns[place], values[place] = column, old_values[entry]
                place += 1


def colour_chunks(bounds: IndexArray, offsets: IndexArray) -> tuple[IndexArray, IndexArray, int]:
    """Cut each colour into pieces of about equal work, and choose the number of threads.

    Parameters
    ----------
    bounds
        The colours, shape (colours + 1,).
    offsets
        Entries before each update, shape (updates + 1,).

    Returns
    -------
    Where the pieces of each colour start among all, shape (colours + 1,); where each piece starts
    among the updates, shape (pieces + 1,); the number of threads.
    """
    colours = len(bounds) - 1
    threads = use_threads(int(offsets[-1]) // max(colours, 1))
    pieces, starts = [0], [np.zeros(1, dtype=np.int64)]
    for first, last in pairwise(bounds):
        chunks = np.array([0, last - first])
        if threads > 1:
            within = offsets[first : last + 1]
            chunks = chunk_bounds(within - within[0])
        starts.append(chunks[1:] + first)
        pieces.append(pieces[-1] + len(chunks) - 1)
    return np.array(pieces), np.concatenate(starts), threads


@njit(inline="always")
def _larger(largest: float, before: float, after: float, absolute: bool) -> float:
    # Comparisons with NaN fail, so that 0/0 and infinity less infinity count as no change.
    change = abs(after - before)
    scale = 1.0 if absolute else abs(before)
    if change > largest * scale:
        return change / scale
    return largest


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_rows(
    pieces: IndexArray,
    starts: IndexArray,
    offsets: IndexArray,
    fresh_ends: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make one sweep ``x_new ← (1 − ω) x + ω (b + A x)``, colour by colour.

    A row reads the states of earlier colours from `x_new`, all others from `x`: so the result does
    not depend on who is first within a colour. Returns the largest change; an empty `offset` stands
    for b = 0.
    """
    worst = np.zeros(len(starts) - 1)
    for colour in range(len(pieces) - 1):
        for piece in prange(pieces[colour], pieces[colour + 1]):
            largest = 0.0
            for row in range(starts[piece], starts[piece + 1]):
                total = offset[row] if len(offset) else 0.0
                for entry in range(offsets[row], fresh_ends[row]):
                    total += values[entry] * x_new[columns[entry]]
                for entry in range(fresh_ends[row], offsets[row + 1]):
                    total += values[entry] * x[columns[entry]]
                before = x[row]
                after = total if omega == 1.0 else (1.0 - omega) * before + omega * total
                x_new[row] = after
                largest = _larger(largest, before, after, absolute)
            worst[piece] = largest
    return worst.max() if len(worst) else 0.0


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_groups(
    pieces: IndexArray,
    starts: IndexArray,
    group_offsets: IndexArray,
    offsets: IndexArray,
    fresh_ends: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    minimise: bool,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make one sweep of value iteration with fresh values; the arguments are as in `sweep_rows`."""
    worst = np.zeros(len(starts) - 1)
    for colour in range(len(pieces) - 1):
        for piece in prange(pieces[colour], pieces[colour + 1]):
            largest = 0.0
            for group in range(starts[piece], starts[piece + 1]):
                best = np.inf if minimise else -np.inf
                for row in range(group_offsets[group], group_offsets[group + 1]):
                    total = offset[row] if len(offset) else 0.0
                    for entry in range(offsets[row], fresh_ends[row]):
                        total += values[entry] * x_new[columns[entry]]
                    for entry in range(fresh_ends[row], offsets[row + 1]):
                        total += values[entry] * x[columns[entry]]
                    best = min(best, total) if minimise else max(best, total)
                before = x[group]
                x_new[group] = best
                largest = _larger(largest, before, best, absolute)
            worst[piece] = largest
    return worst.max() if len(worst) else 0.0
