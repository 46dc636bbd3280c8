"""Solving equations that no two states need of each other, in one walk, in numba."""

from __future__ import annotations

import numpy as np
from numba import njit

from engines.formats.csr import FloatArray, IndexArray
from engines.system import ROUNDING_OF_A_SUM

IMPOSSIBLE = -1.0
"""Returned where states need each other, or one leads to nothing but itself."""

UNIT = 2.0**-53
SLACK = 8
"""Roundings of a row besides one for each entry: scaling, offset and division."""

WAITING = -1
DONE = -2
"""What stands for an entry to go on with: nothing has been looked at, or everything has."""


@njit(cache=True, error_model="numpy")
def substitute(
    groups: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    states: IndexArray,
    minimise: bool,
    x: FloatArray,
    errors: FloatArray,
) -> float:
    """Solve x = b + A x, or its minimum or maximum over choices, each state after those it needs.

    Parameters
    ----------
    groups
        Where the rows of each state start; empty for one each.
    offsets, columns, values
        The matrix, nothing in it negative.
    offset
        The vector b; empty for 0.
    states
        The state of each group; empty where they have the same numbers.
    minimise
        Over the choices.
    x
        Shape (states,): values of states without a group; takes those of the others.
    errors
        Shape (states,), 0: takes bounds of the relative errors that rounding leaves.

    Returns
    -------
    The largest of the errors, or `IMPOSSIBLE`, and `x` is then of no use.
    """
    chain = len(groups) == 0
    count = len(offsets) - 1 if chain else len(groups) - 1
    group_of = np.full(len(x), -1, dtype=np.int64)
    for group in range(count):
        group_of[group if len(states) == 0 else states[group]] = group
    next_entry = np.full(count, WAITING, dtype=np.int64)
    stack = np.empty(count, dtype=np.int64)
    worst = 0.0
    for root in range(count):
        if next_entry[root] != WAITING:
            continue
        stack[0], height = root, 1
        next_entry[root] = offsets[root if chain else groups[root]]
        while height > 0:
            group = stack[height - 1]
            first = group if chain else int(groups[group])
            last = group + 1 if chain else int(groups[group + 1])
            entry, end = next_entry[group], int(offsets[last])
            while entry < end:
                needed = group_of[columns[entry]]
                if needed >= 0 and needed != group and next_entry[needed] != DONE:
                    break
                entry += 1
            next_entry[group] = entry
            if entry < end:
                if next_entry[needed] != WAITING:
                    return IMPOSSIBLE
                next_entry[needed] = offsets[needed if chain else groups[needed]]
                stack[height] = needed
                height += 1
                continue
            state = group if len(states) == 0 else int(states[group])
            best = np.inf if minimise else -np.inf
            for row in range(first, last):
                total = 0.0 if len(offset) == 0 else offset[row]
                own, others, inherited = 0.0, 0.0, 0.0
                for entry in range(offsets[row], offsets[row + 1]):
                    column = columns[entry]
                    if column == state:
                        own += values[entry]
                    else:
                        others += values[entry]
                        total += values[entry] * x[column]
                        inherited = max(inherited, errors[column])
                roundings = float(offsets[row + 1]) - float(offsets[row]) + SLACK
                if own > 0.0:
                    if not own < 1.0:
                        return IMPOSSIBLE
                    if abs(others + own - 1.0) <= ROUNDING_OF_A_SUM:
                        total /= others
                        roundings *= 2.0
                    else:
                        total /= 1.0 - own
                        roundings *= 1.0 + own / (1.0 - own)
                if total < best if minimise else total > best:
                    best = total
                errors[state] = max(errors[state], inherited + roundings * UNIT)
            x[state] = best
            worst = max(worst, errors[state])
            next_entry[group] = DONE
            height -= 1
    return worst
