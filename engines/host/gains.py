"""Sums over rows in quadruple precision: what known values earn, what a step of a choice gains."""

from __future__ import annotations

import numpy as np

from engines.formats.csr import CsrMatrix, FloatArray, IndexArray
from engines.host.library import doubles, indices, library, pointer


def earned_by_known(
    matrix: CsrMatrix, offset: FloatArray | None, known: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return b + P x, as the nearest doubles and what they are off by, each of shape (rows,).

    Parameters
    ----------
    matrix
        P, shape (rows, states).
    offset
        b, shape (rows,), or None for 0.
    known
        x, shape (states,): 0 where a value is not known.
    """
    high, low = np.empty(matrix.num_rows), np.empty(matrix.num_rows)
    library().pg_earned(
        matrix.num_rows,
        pointer(indices(matrix.row_offsets)),
        pointer(indices(matrix.columns)),
        pointer(doubles(matrix.values)),
        None if offset is None else pointer(doubles(offset)),
        pointer(doubles(known)),
        pointer(high),
        pointer(low),
    )
    return high, low


def gains_of_choices(
    matrix: CsrMatrix,
    states: IndexArray,
    offset: FloatArray | None,
    values: FloatArray,
    rest: FloatArray,
    digits: float,
) -> tuple[FloatArray, FloatArray]:
    """Return b + Σ p (x' − x) of each choice, and how far rounding may have put it off.

    Parameters
    ----------
    matrix
        Probabilities, shape (choices, states), each row adding up to 1 but for rounding.
    states
        The state of each choice, shape (choices,).
    offset
        b, shape (choices,), or None for 0.
    values, rest
        x is their sum, each of shape (states,); infinite values are those of `values` alone.
    digits
        A bound of the relative error of x.

    Returns
    -------
    Gains and doubts, each of shape (choices,); infinite gains have no doubt.
    """
    gains, doubts = np.empty(matrix.num_rows), np.empty(matrix.num_rows)
    library().pg_gains(
        matrix.num_rows,
        pointer(indices(matrix.row_offsets)),
        pointer(indices(matrix.columns)),
        pointer(doubles(matrix.values)),
        pointer(indices(states)),
        None if offset is None else pointer(doubles(offset)),
        pointer(doubles(values)),
        pointer(doubles(rest)),
        digits,
        pointer(gains),
        pointer(doubts),
    )
    return gains, doubts
