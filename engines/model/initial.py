"""Initial distributions over states."""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray

INITIAL_TOLERANCE = 1e-6
"""How far from 1 an initial distribution may sum."""


def check_distribution(initial: FloatArray, num_states: int) -> FloatArray:
    """Return an initial distribution as an array of doubles, shape (states,).

    Parameters
    ----------
    initial
        The probability of each state.
    num_states
        How many states there are.

    Raises
    ------
    ValueError
        If the numbers are no distribution over the states.
    """
    initial = np.asarray(initial, dtype=np.float64)
    fits = initial.shape == (num_states,) and bool(np.all(initial >= 0.0))
    if not fits or abs(float(initial.sum()) - 1.0) > INITIAL_TOLERANCE:
        raise ValueError(
            f"the initial distribution must have {num_states} probabilities that sum to 1"
        )
    return initial
