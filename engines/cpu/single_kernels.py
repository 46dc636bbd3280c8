"""Sweeps of vectors in single precision in numba, over all cores.

Sums are taken in double precision and rounded when they are stored, as the GPU does it.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from engines.formats.csr import FloatArray, IndexArray

LEAST_SCALE = 2.0**-100
"""Changes of smaller values are measured against this: near the end of float's range they jump."""

_BELOW_ALL = np.float32(-np.inf)


@njit(inline="always")
def _kept(value: float, nearest: bool) -> np.float32:
    kept = np.float32(value)
    if not nearest and kept > value:
        kept = np.nextafter(kept, _BELOW_ALL)
    return kept


@njit(inline="always")
def _larger_change(largest: float, before: float, after: float, absolute: bool) -> float:
    # Comparisons with NaN fail, so that infinity less infinity counts as no change.
    change = abs(after - before)
    scale = 1.0 if absolute else max(abs(before), LEAST_SCALE)
    if change > largest * scale:
        return change / scale
    return largest


@njit(inline="always")
def _row_sum(
    row: int,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    x: FloatArray,
) -> float:
    total = np.float64(offset[row]) if len(offset) else 0.0
    for entry in range(offsets[row], offsets[row + 1]):
        total += np.float64(values[entry]) * np.float64(x[columns[entry]])
    return total


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
    nearest: bool,
) -> float:
    """Make the sweep of `engines.cpu.kernels.sweep_rows`; all but the indices are float32."""
    worst = np.zeros(len(bounds) - 1)
    for chunk in prange(len(bounds) - 1):
        largest = 0.0
        for row in range(bounds[chunk], bounds[chunk + 1]):
            total = _row_sum(row, offsets, columns, values, offset, x)
            state = states[row] if len(states) else row
            before = np.float64(x[state])
            after = total if omega == 1.0 else (1.0 - omega) * before + omega * total
            kept = _kept(after, nearest)
            x_new[state] = kept
            largest = _larger_change(largest, before, np.float64(kept), absolute)
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
    nearest: bool,
) -> float:
    """Make the sweep of `engines.cpu.kernels.sweep_groups`; all but the indices are float32."""
    worst = np.zeros(len(bounds) - 1)
    for chunk in prange(len(bounds) - 1):
        largest = 0.0
        for group in range(bounds[chunk], bounds[chunk + 1]):
            best = np.inf if minimise else -np.inf
            for row in range(group_offsets[group], group_offsets[group + 1]):
                total = _row_sum(row, offsets, columns, values, offset, x)
                best = min(best, total) if minimise else max(best, total)
            state = states[group] if len(states) else group
            before = np.float64(x[state])
            kept = _kept(best, nearest)
            x_new[state] = kept
            largest = _larger_change(largest, before, np.float64(kept), absolute)
        worst[chunk] = largest
    return worst.max() if len(worst) else 0.0
