"""Two-sided sweeps in numba; imported only when a model is large enough to want them."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from engines.formats.csr import FloatArray, IndexArray
from engines.two_sided import SMALLEST, UNIT_ROUNDOFF


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_groups_two_sided(
    bounds: IndexArray,
    group_offsets: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    states: IndexArray,
    minimise: bool,
    monotonic_below: bool,
    monotonic_above: bool,
    slack: int,
    absolute: bool,
    x: FloatArray,
    x_new: FloatArray,
) -> FloatArray:
    """Make one sweep of both iterates, shape (states, 2); return its record.

    `bounds` cuts the groups; an empty `offset` stands for no rewards, an empty `states` for the
    identity. The record has the fields of `engines.two_sided.SweepRecord`.
    """
    pieces = len(bounds) - 1
    records = np.zeros((pieces, 8))
    for chunk in prange(pieces):
        width_most, rise_most, fall_most, crossing_most, moved = 0.0, 0.0, 0.0, 0.0, 0.0
        for group in range(bounds[chunk], bounds[chunk + 1]):
            lower = np.inf if minimise else -np.inf
            upper = lower
            for row in range(group_offsets[group], group_offsets[group + 1]):
                low_sum = offset[row] if len(offset) else 0.0
                up_sum = low_sum
                for entry in range(offsets[row], offsets[row + 1]):
                    column = columns[entry]
                    low_sum += values[entry] * x[column, 0]
                    up_sum += values[entry] * x[column, 1]
                length = float(offsets[row + 1] - offsets[row])
                rounding = (length + slack) * UNIT_ROUNDOFF
                smallest = (length + 1.0) * SMALLEST
                low_sum = low_sum * (1.0 - rounding) - smallest
                up_sum = up_sum * (1.0 + rounding) + smallest
                lower = min(lower, low_sum) if minimise else max(lower, low_sum)
                upper = min(upper, up_sum) if minimise else max(upper, up_sum)
            lower = max(lower, 0.0)
            state = states[group] if len(states) else group
            low, up = x[state, 0], x[state, 1]
            if upper > up:
                rise_most = max(rise_most, (upper - up) / up)
                upper = up if monotonic_above else upper
            if lower < low:
                fall_most = max(fall_most, (low - lower) / low)
                lower = low if monotonic_below else lower
            if lower != low or upper != up:
                moved = 1.0
            x_new[state, 0] = lower
            x_new[state, 1] = upper
            width = upper - lower
            if width < 0.0:
                crossing_most = max(crossing_most, -width)
            elif width > 0.0:
                width_most = max(width_most, width if absolute else width / lower)
        records[chunk, 0] = width_most
        records[chunk, 1] = rise_most
        records[chunk, 2] = fall_most
        records[chunk, 3] = crossing_most
        records[chunk, 4] = moved
    record = np.zeros(5)
    for field in range(5):
        record[field] = records[:, field].max() if pieces else 0.0
    return record
