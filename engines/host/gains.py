"""Sums over rows in quadruple precision: what known values earn, what a step of a choice gains."""

from __future__ import annotations

from ctypes import c_double, c_int64

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.host.compiled.library import DOUBLES, INDICES, Function, doubles, indices
from engines.model.csr import CsrMatrix

_MATRIX = (c_int64, INDICES, INDICES, DOUBLES)
_EARNED = Function("pg_earned", None, *_MATRIX, DOUBLES, DOUBLES, DOUBLES, DOUBLES)
_GAINS = Function(
    "pg_gains",
    None,
    *(*_MATRIX, INDICES, DOUBLES, DOUBLES, DOUBLES),
    *(c_double, DOUBLES, DOUBLES),
)


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
    _EARNED(
        matrix.num_rows,
        indices(matrix.row_offsets),
        indices(matrix.columns),
        doubles(matrix.values),
        None if offset is None else doubles(offset),
        doubles(known),
        high,
        low,
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
    """Return b + Σ p x' − x of each choice, and how far rounding may have put it off.

    Parameters
    ----------
    matrix
        Probabilities, shape (choices, states). What a row adds up to less than 1, but for rounding,
        is lost, as in the graphs of timed automata.
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
    _GAINS(
        matrix.num_rows,
        indices(matrix.row_offsets),
        indices(matrix.columns),
        doubles(matrix.values),
        indices(states),
        None if offset is None else doubles(offset),
        doubles(values),
        doubles(rest),
        digits,
        gains,
        doubts,
    )
    return gains, doubts
