"""Sweeps over entries with coded values in numba, over all cores."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from engines.cpu.kernels import _larger_change
from engines.formats.csr import FloatArray, IndexArray


@njit(inline="always")
def _row_sum(
    row: int,
    offsets: IndexArray,
    columns: IndexArray,
    codes: IndexArray,
    numbers: FloatArray,
    offset: FloatArray,
    x: FloatArray,
) -> float:
    total = offset[row] if len(offset) else 0.0
    for entry in range(offsets[row], offsets[row + 1]):
        total += numbers[codes[entry]] * x[columns[entry]]
    return total


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_rows(
    bounds: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    codes: IndexArray,
    numbers: FloatArray,
    offset: FloatArray,
    states: IndexArray,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make the sweep of `engines.cpu.kernels.sweep_rows` with ``numbers[codes]`` for values."""
    worst = np.zeros(len(bounds) - 1)
    for chunk in prange(len(bounds) - 1):
        largest = 0.0
        for row in range(bounds[chunk], bounds[chunk + 1]):
            total = _row_sum(row, offsets, columns, codes, numbers, offset, x)
            state = states[row] if len(states) else row
            before = x[state]
            after = total if omega == 1.0 else (1.0 - omega) * before + omega * total
            x_new[state] = after
            largest = _larger_change(largest, before, after, absolute)
        worst[chunk] = largest
    return worst.max() if len(worst) else 0.0


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_groups(
    bounds: IndexArray,
    group_offsets: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    codes: IndexArray,
    numbers: FloatArray,
    offset: FloatArray,
    states: IndexArray,
    minimise: bool,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make the sweep of `engines.cpu.kernels.sweep_groups` with ``numbers[codes]`` for values."""
    worst = np.zeros(len(bounds) - 1)
    for chunk in prange(len(bounds) - 1):
        largest = 0.0
        for group in range(bounds[chunk], bounds[chunk + 1]):
            best = np.inf if minimise else -np.inf
            for row in range(group_offsets[group], group_offsets[group + 1]):
                total = _row_sum(row, offsets, columns, codes, numbers, offset, x)
                best = min(best, total) if minimise else max(best, total)
            state = states[group] if len(states) else group
            before = x[state]
            x_new[state] = best
            largest = _larger_change(largest, before, best, absolute)
        worst[chunk] = largest
    return worst.max() if len(worst) else 0.0
