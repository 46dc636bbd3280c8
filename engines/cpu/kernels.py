"""Sweeps in numba, over all cores; imported only when a model is large enough to want them."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange

from engines.formats.csr import FloatArray, IndexArray

CHUNKS_PER_THREAD = 8


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
    pieces = get_num_threads() * CHUNKS_PER_THREAD
    rows = len(row_offsets) - 1
    # A row costs its entries and about two entries' worth of its own.
    work = row_offsets + 2 * np.arange(rows + 1, dtype=np.int64)
    wanted = np.linspace(0, work[-1], pieces + 1)
    bounds = np.searchsorted(work, wanted[:-1], side="left")
    return np.append(bounds, rows).astype(np.int64)


@njit(inline="always")
def _change(before: float, after: float, absolute: bool) -> float:
    # Written so that 0/0 and ∞ − ∞ (NaN) count as no change, as PRISM's test has it.
    change = abs(after - before)
    if not absolute:
        change = change / abs(before) if before != 0.0 else (np.inf if change > 0.0 else 0.0)
    return change


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

    An empty `offset` stands for b = 0, an empty `states` for the identity.
    """
    worst = np.zeros(len(bounds) - 1)
    for chunk in prange(len(bounds) - 1):
        largest = 0.0
        for row in range(bounds[chunk], bounds[chunk + 1]):
            total = offset[row] if len(offset) else 0.0
            for entry in range(offsets[row], offsets[row + 1]):
                total += values[entry] * x[columns[entry]]
            state = states[row] if len(states) else row
            before = x[state]
            after = total if omega == 1.0 else (1.0 - omega) * before + omega * total
            x_new[state] = after
            change = _change(before, after, absolute)
            if change > largest:
                largest = change
        worst[chunk] = largest
    return worst.max() if len(worst) else 0.0


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
            best = np.inf if minimise else -np.inf
            for row in range(group_offsets[group], group_offsets[group + 1]):
                total = offset[row] if len(offset) else 0.0
                for entry in range(offsets[row], offsets[row + 1]):
                    total += values[entry] * x[columns[entry]]
                best = min(best, total) if minimise else max(best, total)
            state = states[group] if len(states) else group
            before = x[state]
            x_new[state] = best
            change = _change(before, best, absolute)
            if change > largest:
                largest = change
        worst[chunk] = largest
    return worst.max() if len(worst) else 0.0
