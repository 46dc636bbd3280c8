"""The error of a method that the user named, found when its iterations have ended.

Such iterations end when one changes little, as PRISM's do, and that bounds nothing: where they
contract slowly, the values may be far off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray
from engines.methods import direct
from engines.methods.single import largest_value
from engines.model.csr import CsrMatrix
from engines.model.environment import Method, SolverEnvironment
from engines.model.result import SolveResult, Status

Reference = Callable[[], tuple[FloatArray, float]]
"""Returns another solution and a bound of its relative error; raises RuntimeError where that takes
too long."""

PROVEN = (Method.GMRES, Method.MULTILEVEL)
"""Methods of ours, which know their errors."""

MOST_STATES = 20_000
"""Larger systems are not solved a second time."""


def affordable(matrix: CsrMatrix) -> bool:
    """Return whether a system over this matrix may be solved a second time.

    Parameters
    ----------
    matrix
        Shape (rows, states).
    """
    return matrix.num_rows <= MOST_STATES and direct.fits(matrix)


def measured(
    result: SolveResult, environment: SolverEnvironment, reference: Reference | None
) -> SolveResult:
    """Return a result with the error that another solution tells.

    Parameters
    ----------
    result
        Of a method that the user named; one of ours is returned as it is.
    environment
        What was asked for.
    reference
        The other solution; None where it takes too long. Then the error is not known.
    """
    if environment.automatic or environment.method in PROVEN or result.finished_by:
        return result
    if result.status is Status.DIVERGED:
        return result
    unknown = replace(result, error_known=False)
    if reference is None:
        return unknown
    try:
        values, error = reference()
    except RuntimeError:
        return unknown
    trusted = result.values >= result.trusted_above
    off = distance(result.values[trusted], values[trusted], absolute=environment.absolute)
    found = off + error * (largest_value(values, True) if environment.absolute else 1.0 + off)
    return replace(result, error_estimate=found) if np.isfinite(found) else unknown


def distance(values: FloatArray, exact: FloatArray, *, absolute: bool) -> float:
    """Return how far values are from exact ones, at most.

    Parameters
    ----------
    values, exact
        Shape (states,).
    absolute
        Whether that is an absolute distance; else it is relative to `values`.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.where(values == exact, 0.0, np.abs(values - exact))
        off = off if absolute else np.where(off == 0.0, 0.0, off / np.abs(values))
    return float(np.max(off, initial=0.0))
