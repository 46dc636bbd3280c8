"""What PRISM's report may say of the error of a solve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engines.arrays import FloatArray, extremes
from engines.model.decided import decided_complements, decided_values
from engines.model.result import SolveResult
from prism_hooks.report import Ending

ROUNDING_BOUND = 10.0 * float(np.finfo(np.float64).eps)
"""The smallest error that a one-sided method of our choice ever claims."""

ROUNDING_OF_STEPS = 1e-12
"""What rounding may make of values that PRISM takes for exact, by its own account."""


class Claim(NamedTuple):
    """The largest error of a vector of values.

    Parameters
    ----------
    error
        The error; 0 for values that are exact but for rounding, NaN where nothing is known.
    absolute
        Whether it is absolute; else relative.
    guaranteed
        Whether it is a bound; else an estimate.
    decided
        Values that have no error in any state.
    complements
        Of probabilities p: values of 1 - p that have no error in any state.
    """

    error: float
    absolute: bool
    guaranteed: bool
    decided: tuple[float, ...] = ()
    complements: tuple[float, ...] = ()


UNSTATED = Claim(float("nan"), False, False)
"""Where nothing is known of the error."""

UNKNOWN = Claim(float("inf"), True, False)
"""Where no contraction was seen, or all digits were lost, the error may be of any size."""


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
    PRISM estimates ten times the last change, and so do we for a method that the user named, unless
    what another solution tells (see `engines.methods.afterwards`) is more; where that takes too
    long, nothing is stated. A method of our choice is estimated by the contraction that was
    observed alone; and what single precision has rounded off is far more than the last change
    shows.
    """
    claim = _claim_of(result, absolute or result.absolute, automatic, ending)
    if claim.error == 0.0:
        return claim
    decided = _decided(result)
    complements = decided_complements(result.values, decided)
    return claim._replace(decided=decided, complements=complements)


def _claim_of(result: SolveResult, absolute: bool, automatic: bool, ending: Ending) -> Claim:
    if ending is Ending.STEPS:
        return Claim(0.0, True, False)
    if ending is Ending.TIME:
        # Proven, but PRISM takes a proven result for one without any other uncertainty: its tests
        # then want as many digits of it as were claimed, and models have rounded rates.
        return Claim(result.error_estimate, True, False)
    if result.unrounded and result.residual == 0.0:
        return Claim(0.0, absolute, False)
    if result.two_sided:
        if result.bounds is not None and not np.isfinite(result.error_estimate):
            # A lower bound of 0 leaves the relative error open, and not the absolute one.
            return Claim(_largest_distance(result), True, True)
        return Claim(result.error_estimate, absolute, True)
    if not result.error_known:
        return UNSTATED
    # Even a fixed point of the sweeps is not exact, and PRISM takes states whose exact values
    # differ by a rounding for different: a filter would miss the ties of its maximum.
    largest = max(_largest(result.values), 1.0 if result.absolute else 0.0)
    rounding = ROUNDING_BOUND * (largest if absolute else 1.0)
    expected = result.error_estimate
    if automatic or result.rounding > 0.0:
        error = max(expected, result.change, rounding)
        if result.trusted_above > 0.0:
            error = error * _largest(result.values) + 2.0 * result.trusted_above
            absolute = True
        return Claim(error, absolute, False) if np.isfinite(error) else UNKNOWN
    # Few sweeps show no contraction.
    error = max(10.0 * result.change, expected if np.isfinite(expected) else 0.0, rounding)
    scale = 1.0 if absolute else _largest(result.values) or 1.0
    if result.residual / scale > 10.0 * error:
        # Relaxed sweeps may change next to nothing, and stand far from a solution.
        return UNSTATED
    return Claim(error, absolute, False)


def _largest(values: FloatArray) -> float:
    if not len(values):
        return 0.0
    # Without a copy, in which nearly always nothing would be left out.
    least, greatest = extremes(values)
    largest = max(greatest, -least)
    if np.isfinite(largest):
        return largest
    return float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))


def _decided(result: SolveResult) -> tuple[float, ...]:
    if result.bounds is None:
        return result.decided
    lower, upper = result.bounds
    between = decided_values(result.values, lower == upper)
    return tuple(sorted({*result.decided, *between}))


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
