"""What PRISM's report may say of the error of a solve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engines.result import SolveResult
from prism_hooks.report import Ending

ROUNDING_BOUND = 10.0 * float(np.finfo(np.float64).eps)
"""The smallest error that a one-sided method of our choice ever claims."""


class Claim(NamedTuple):
    """The largest error of a vector of values.

    Parameters
    ----------
    error
        The error; 0 for values that are exact but for rounding.
    absolute
        Whether it is absolute; else relative.
    guaranteed
        Whether it is a bound; else an estimate.
    """

    error: float
    absolute: bool
    guaranteed: bool


UNKNOWN = Claim(1.0, False, False)
"""Where no contraction was seen, the error may be as large as the value."""


def claim_of(
    result: SolveResult, *, absolute: bool, automatic: bool, ending: Ending = Ending.CONVERGENCE
) -> Claim:
    """Return what is known of the error of a finished solve.

    Parameters
    ----------
    result
        The solve.
    absolute
        Whether its changes are absolute.
    automatic
        Whether the method was ours to choose.
    ending
        What ended its sweeps.

    Notes
    -----
    PRISM estimates ten times the last change, and so do we for a method that the user named. A
    method of our choice has a better estimate, from the contraction that it observed; and what
    single precision has rounded off is far more than the last change shows.
    """
    if ending is Ending.STEPS:
        return Claim(0.0, True, False)
    if ending is Ending.TIME:
        # Proven, but PRISM takes a proven result for one without any other uncertainty: its tests
        # then want as many digits of it as were claimed, and models have rounded rates.
        return Claim(result.error_estimate, True, False)
    if result.iterations == 0 and result.error_estimate == result.residual == 0.0:
        return Claim(0.0, absolute, False)
    if result.two_sided:
        if result.bounds is not None and not np.isfinite(result.error_estimate):
            # A lower bound of 0 leaves the relative error open, and not the absolute one.
            return Claim(_largest_distance(result), True, True)
        return Claim(result.error_estimate, absolute, True)
    if automatic or result.rounding > 0.0:
        # Even a fixed point of the sweeps is not exact, and PRISM takes states whose exact values
        # differ by a rounding for different: a filter would miss the ties of its maximum.
        error = max(result.error_estimate, result.change, ROUNDING_BOUND)
        return Claim(error, absolute, False) if np.isfinite(error) else UNKNOWN
    # A sweep may change next to nothing because it is relaxed, and yet be far from a solution.
    largest = 1.0 if absolute else _largest_value(result)
    unexplained = result.residual / largest if largest > 0.0 else result.residual
    error = 10.0 * float(np.maximum(result.change, unexplained))
    return Claim(error, absolute, False) if np.isfinite(error) else UNKNOWN


def _largest_value(result: SolveResult) -> float:
    known = np.isfinite(result.values)
    return float(np.max(np.abs(result.values), initial=0.0, where=known))


def _largest_distance(result: SolveResult) -> float:
    """Return how far a value may be from what it stands for, by the bounds of all states."""
    assert result.bounds is not None
    lower, upper = result.bounds
    known = np.isfinite(result.values)
    values = result.values[known]
    distances = np.maximum(upper[known] - values, values - lower[known])
    # One unit of the larger number for the subtraction.
    rounding = float(np.finfo(np.float64).eps) * np.max(values, initial=0.0)
    return float(np.max(distances, initial=0.0) + rounding)
