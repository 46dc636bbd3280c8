"""Sweeps in numba, over all cores; imported only when a model is large enough to want them."""

from __future__ import annotations

import os

import numpy as np

# Read when OpenMP is loaded. Threads that spin at the end of each sweep cost a sweep its time slice
# as soon as another program wants a core.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from numba import get_num_threads, njit, prange, set_num_threads

from engines.cpu.chunks import CHUNKS_PER_THREAD, ENTRIES_PER_THREAD, cut_rows
from engines.formats.csr import FloatArray, IndexArray

ALL_THREADS = int(get_num_threads())


def use_threads(entries: int) -> int:
    """Let later sweeps use as many threads as this many entries repay; return how many.

    Parameters
    ----------
    entries
        Entries of the matrix.
    """
    threads = max(1, min(ALL_THREADS, entries // ENTRIES_PER_THREAD))
    set_num_threads(threads)
    return threads


def use_so_many(threads: int) -> None:
    """Let later sweeps use so many threads, or all there are.

    Parameters
    ----------
    threads
        How many.
    """
    set_num_threads(min(threads, ALL_THREADS))


def chunk_bounds(row_offsets: IndexArray) -> IndexArray:
    """Cut the rows into pieces of about equal numbers of entries.

    Parameters
    ----------
    row_offsets
        Shape (rows + 1,).

    Returns
    -------
    Shape (pieces + 1,): piece k is rows ``bounds[k]`` to ``bounds[k + 1] - 1``.
    """
    return cut_rows(row_offsets, get_num_threads() * CHUNKS_PER_THREAD)


def unsigned(array: IndexArray) -> IndexArray:
    """Return a view of indices as unsigned numbers.

    numba then leaves out the test for negative indices, which takes nearly half of a sweep.
    """
    view: IndexArray = array.view(np.uint32 if array.dtype.itemsize == 4 else np.uint64)
    return view


@njit(inline="always")
def _larger_change(largest: float, before: float, after: float, absolute: bool) -> float:
    # Comparisons with NaN fail, so that 0/0 and infinity less infinity count as no change.
    change = abs(after - before)
    scale = 1.0 if absolute else abs(before)
    if change > largest * scale:
        return change / scale
    return largest


@njit(inline="always")
def _sweep_row(
    row: int,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    states: IndexArray,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
    largest: float,
) -> float:
    total = offset[row] if len(offset) else 0.0
    for entry in range(offsets[row], offsets[row + 1]):
        total += values[entry] * x[columns[entry]]
    state = states[row] if len(states) else row
    before = x[state]
    after = total if omega == 1.0 else (1.0 - omega) * before + omega * total
    x_new[state] = after
    return _larger_change(largest, before, after, absolute)


@njit(inline="always")
def _sweep_group(
    group: int,
    group_offsets: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    states: IndexArray,
    minimise: bool,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
    largest: float,
) -> float:
    best = np.inf if minimise else -np.inf
    for row in range(group_offsets[group], group_offsets[group + 1]):
        total = offset[row] if len(offset) else 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            total += values[entry] * x[columns[entry]]
        best = min(best, total) if minimise else max(best, total)
    state = states[group] if len(states) else group
    before = x[state]
    x_new[state] = best
    return _larger_change(largest, before, best, absolute)


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_rows(
    bounds: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    states: IndexArray,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make one sweep ``x_new ← (1 − ω) x + ω (b + A x)``; return the largest change.

    `bounds` cuts the rows; an empty `offset` stands for b = 0, an empty `states` for the identity.
    """
    worst = np.zeros(len(bounds) - 1)
    for chunk in prange(len(bounds) - 1):
        largest = 0.0
        for row in range(bounds[chunk], bounds[chunk + 1]):
            largest = _sweep_row(
                row, offsets, columns, values, offset, states, omega, x, x_new, absolute, largest
            )
        worst[chunk] = largest
    return worst.max() if len(worst) else 0.0


@njit(cache=True, error_model="numpy")
def repeat_rows(
    changes: FloatArray,
    stop_below: float,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    states: IndexArray,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> int:
    """Make a sweep for each of `changes` on one thread; return how many were made.

    The vectors change places after each sweep. The first change below `stop_below` ends it.
    """
    rows = len(offsets) - 1 if len(x) else 0
    for k in range(len(changes)):
        largest = 0.0
        for row in range(rows):
            largest = _sweep_row(
                row, offsets, columns, values, offset, states, omega, x, x_new, absolute, largest
            )
        changes[k] = largest
        x, x_new = x_new, x
        if largest < stop_below:
            return k + 1
    return len(changes)


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_groups(
    bounds: IndexArray,
    group_offsets: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    states: IndexArray,
    minimise: bool,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make one sweep of value iteration; return the largest change.

    `bounds` cuts the groups; an empty `offset` stands for no rewards, an empty `states` for the
    identity.
    """
    worst = np.zeros(len(bounds) - 1)
    for chunk in prange(len(bounds) - 1):
        largest = 0.0
        for group in range(bounds[chunk], bounds[chunk + 1]):
            largest = _sweep_group(
                group,
                group_offsets,
                offsets,
                columns,
                values,
                offset,
                states,
                minimise,
                x,
                x_new,
                absolute,
                largest,
            )
        worst[chunk] = largest
    return worst.max() if len(worst) else 0.0


@njit(cache=True, error_model="numpy")
def repeat_groups(
    changes: FloatArray,
    stop_below: float,
    group_offsets: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    states: IndexArray,
    minimise: bool,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> int:
    """Make a sweep of value iteration for each of `changes`, as `repeat_rows` does."""
    groups = len(group_offsets) - 1 if len(x) else 0
    for k in range(len(changes)):
        largest = 0.0
        for group in range(groups):
            largest = _sweep_group(
                group,
                group_offsets,
                offsets,
                columns,
                values,
                offset,
                states,
                minimise,
                x,
                x_new,
                absolute,
                largest,
            )
        changes[k] = largest
        x, x_new = x_new, x
        if largest < stop_below:
            return k + 1
    return len(changes)
