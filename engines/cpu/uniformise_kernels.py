"""Sweeps of a uniformised chain in numba; imported only when a model is large enough."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from engines.formats.csr import FloatArray, IndexArray


@njit(inline="always")
def _sweep_row(
    row: int,
    offsets: IndexArray,
    columns: IndexArray,
    rates: FloatArray,
    states: IndexArray,
    stay: FloatArray,
    rate: float,
    coefficient: float,
    x: FloatArray,
    x_new: FloatArray,
    total: FloatArray,
) -> bool:
    """Compute a row of ``x_new ← P x``, add it times the coefficient; return whether it changed."""
    inflow = 0.0
    for entry in range(offsets[row], offsets[row + 1]):
        inflow += rates[entry] * x[columns[entry]]
    state = states[row] if len(states) else row
    before = x[state]
    after = stay[row] * before + inflow / rate
    x_new[state] = after
    if coefficient != 0.0:
        total[row] += coefficient * after
    return bool(after != before)


@njit(cache=True, error_model="numpy")
def add_powers(
    offsets: IndexArray,
    columns: IndexArray,
    rates: FloatArray,
    states: IndexArray,
    stay: FloatArray,
    rate: float,
    coefficients: FloatArray,
    x: FloatArray,
    x_new: FloatArray,
    total: FloatArray,
) -> tuple[int, bool]:
    """Make a sweep for each coefficient, on one thread, until one changes nothing.

    The vectors change places after each sweep. An empty `states` stands for the identity.

    Returns
    -------
    Sweeps made, and whether the last of them changed nothing.
    """
    for k in range(len(coefficients)):
        changed = False
        for row in range(len(stay)):
            if _sweep_row(
                row, offsets, columns, rates, states, stay, rate, coefficients[k], x, x_new, total
            ):
                changed = True
        x, x_new = x_new, x
        if not changed:
            return k + 1, True
    return len(coefficients), False


@njit(parallel=True, cache=True, error_model="numpy")
def add_power(
    bounds: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    rates: FloatArray,
    states: IndexArray,
    stay: FloatArray,
    rate: float,
    coefficient: float,
    x: FloatArray,
    x_new: FloatArray,
    total: FloatArray,
) -> bool:
    """Make one sweep on all threads; return whether it changed nothing.

    `bounds` cuts the rows; an empty `states` stands for the identity.
    """
    changed = np.zeros(len(bounds) - 1, dtype=np.uint8)
    for chunk in prange(len(bounds) - 1):
        any_changed = False
        for row in range(bounds[chunk], bounds[chunk + 1]):
            if _sweep_row(
                row, offsets, columns, rates, states, stay, rate, coefficient, x, x_new, total
            ):
                any_changed = True
        changed[chunk] = any_changed
    return not changed.any()
