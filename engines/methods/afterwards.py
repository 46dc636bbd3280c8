"""The error of a method that the user named, found when its iterations have ended.

Such iterations end when one changes little, as PRISM's do, and that bounds nothing: where they
contract slowly, the values may be far off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.model.events import Events, Kind
from engines.model.result import SolveResult, Status

Reference = Callable[[], tuple[FloatArray, float]]
"""Returns another solution and its error, in the measure of the environment; raises RuntimeError
where none is found."""

FEW_ROWS = 20_000
"""A system of no more rows is always solved a second time, on the CPU."""

MOST_WORK = 1e9
"""A larger one is if its iterations have converged, and they times the entries are no more:
half a second of a CPU."""

AGAIN = 2e9
"""The same of the iterations that a second solve of a larger system makes at most."""


def affordable(matrix: CsrMatrix, result: SolveResult) -> bool:
    """Return whether a system over this matrix may be solved a second time.

    Parameters
    ----------
    matrix
        Shape (rows, states).
    result
        The first solve.
    """
    if matrix.num_rows <= FEW_ROWS:
        return True
    converged = result.status is Status.CONVERGED
    return converged and matrix.num_entries * result.iterations <= MOST_WORK


def of_our_choice(environment: SolverEnvironment, matrix: CsrMatrix) -> SolverEnvironment:
    """Return how a system is solved a second time: by our own method.

    Parameters
    ----------
    environment
        How the user asked for it, by a method's name.
    matrix
        As of `affordable`.
    """
    # A thousandth, but for what rounding leaves of it.
    epsilon = max(1e-3 * environment.epsilon, 1e-12)
    ours = SolverEnvironment(epsilon=epsilon, absolute=environment.absolute)
    if matrix.num_rows <= FEW_ROWS:
        return replace(ours, device=DeviceChoice.CPU)
    return replace(
        ours,
        device=environment.device,
        device_number=environment.device_number,
        device_memory=environment.device_memory,
        max_iterations=int(AGAIN / max(1, matrix.num_entries)),
        max_iterations_named=True,
    )


def solution_of(result: SolveResult) -> tuple[FloatArray, float]:
    """Return what our own method has found, as a `Reference` does.

    Parameters
    ----------
    result
        Of a solve in an environment `of_our_choice`.

    Raises
    ------
    RuntimeError
        If its error is not known in all states.
    """
    if result.status is not Status.CONVERGED or result.trusted_above or result.absolute:
        raise RuntimeError("our own method does not know its error")
    return result.values, result.error_estimate


def checked(
    result: SolveResult,
    environment: SolverEnvironment,
    matrix: CsrMatrix,
    again: Callable[[SolverEnvironment], tuple[FloatArray, float]],
) -> SolveResult:
    """Return a result with the error that a second solve tells, where that is affordable.

    Parameters
    ----------
    result
        Of a method that the user named; one of ours is returned as it is.
    environment
        What was asked for.
    matrix
        Of the system, shape (rows, states).
    again
        Solves it as an environment says, and returns what a `Reference` does.
    """
    if not affordable(matrix, result):
        return measured(result, environment, None)
    return measured(result, environment, lambda: again(of_our_choice(environment, matrix)))


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
    if environment.automatic or environment.method is Method.GMRES or result.finished_by:
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
    trusted_above = result.trusted_above
    if not environment.absolute:
        # Below the normal numbers there are too few digits for a relative error.
        tiny = float(np.finfo(np.float64).tiny)
        lost = (result.values < tiny) & (values < tiny) & (values != result.values)
        if lost.any():
            trusted &= ~lost
            trusted_above = max(trusted_above, tiny)
    off = distance(result.values[trusted], values[trusted], absolute=environment.absolute)
    found = off + error * (1.0 if environment.absolute else 1.0 + off)
    if not np.isfinite(found):
        return unknown
    better = replace(result, error_estimate=found, trusted_above=trusted_above)
    others = tuple(event for event in result.events if event.kind is not Kind.CHANGE_MISLEADS)
    return replace(better, events=(*others, *misleading_change(better, environment)))


def misleading_change(result: SolveResult, environment: SolverEnvironment) -> Events:
    """Return a warning where the test that a named method stops by is misleading, or nothing.

    Parameters
    ----------
    result
        A solve by a named method.
    environment
        What it was asked for.
    """
    error = result.error_estimate
    if environment.precision is Precision.SINGLE:
        return ()
    # PRISM takes the error of a named method to be ten times epsilon; more is worth a warning.
    if result.status is not Status.CONVERGED or not 10.0 * environment.epsilon < error < np.inf:
        return ()
    misled = Kind.CHANGE_MISLEADS(
        method=result.method,
        epsilon=environment.epsilon,
        error_kind=environment.error_kind,
        error=error,
    )
    return (misled,)


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
