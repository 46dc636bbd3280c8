"""Which values of a result have no error at all."""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray, MaskArray, each_once

ROUNDING_OF_COMPLEMENTS = 2.0**-54
"""What 1 - p may be rounded by: half the distance of the numbers below 1."""

OF_THE_GRAPH = (0.0, 1.0, np.inf)
"""The values that searches of a graph decide."""


def decided_values(values: FloatArray, known: MaskArray) -> tuple[float, ...]:
    """Return the values 0, 1 and infinity that no state has but known ones.

    Parameters
    ----------
    values
        Shape (states,).
    known
        States whose values have no error, shape (states,).
    """
    if len(each_once(values)) == len(each_once(known)):
        values, known = each_once(values), each_once(known)
    found = []
    for value in OF_THE_GRAPH:
        there = values == value
        if there.any() and not (there & ~known).any():
            found.append(value)
    return tuple(found)


def decided_complements(values: FloatArray, decided: tuple[float, ...]) -> tuple[float, ...]:
    """Return the values of 1 - p that have no error, given the probabilities p that have none.

    A tiny p is rounded off, and its complement 1 is not that of 0.

    Parameters
    ----------
    values
        The probabilities, shape (states,).
    decided
        Those of them without error in every state that has them.
    """
    found, values = [], each_once(values)
    for value in decided:
        same = values[1.0 - values == 1.0 - value]
        if value <= 1.0 and bool(np.isin(same, decided).all()):
            found.append(1.0 - value)
    return tuple(found)
