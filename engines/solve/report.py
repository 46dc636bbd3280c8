"""The result of a solve, from what its sweeps and stages have come to."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray, left_the_numbers
from engines.diagrams.system import System
from engines.errors import DeviceMemoryError
from engines.host.engine import CpuEngine
from engines.methods.iterate import Iteration
from engines.methods.single import largest_value
from engines.model.environment import Method, SolverEnvironment
from engines.model.events import Event, Kind
from engines.model.result import SolveResult, Status
from engines.solve.ladder import Answer, Solve
from engines.systems.one_sided import HasEvents, HasTwin, Scheme, Sweeper

DIRECT_ERROR = 1e-8
"""A direct solution is taken up to this relative error, which the condition of a system may leave
it with however small epsilon is."""

NO_DIGITS = 0.1
"""A direct solution with a larger relative error is none: it may even have the wrong sign."""


def in_unit(
    solved: tuple[FloatArray, float], environment: SolverEnvironment
) -> tuple[FloatArray, float]:
    """Return values and their error as it is asked for, which is given as a relative one.

    Parameters
    ----------
    solved
        Values, shape (states,), and their relative error.
    environment
        Says whether errors are absolute: then none is above that of the largest value.
    """
    values, error = solved
    return values, error * largest_value(values, environment.absolute)


def swept(solve: Solve, in_stretches: int, setup: float, seconds: float) -> SolveResult:
    """Return the result of the sweeps.

    Parameters
    ----------
    solve
        A solve that has ended.
    in_stretches
        Sweeps that GMRES made besides.
    setup, seconds
        Seconds before the first sweep, and in all.
    """
    sweeper, outcome = solve.sweeper, solve.outcome
    return SolveResult(
        values=sweeper.values(),
        status=outcome.status,
        method=solve.method,
        iterations=outcome.iterations + in_stretches,
        change=outcome.change,
        residual=sweeper.residual(),
        error_estimate=outcome.error_estimate,
        seconds=seconds,
        setup_seconds=setup,
        sweeping_seconds=solve.earlier_seconds + sweeper.seconds,
        cost=sweeper.cost,
        events=(*solve.events, *_told_in_the_end(solve)),
    )


def _told_in_the_end(solve: Solve) -> list[Event]:
    """Return what scheme and sweeper tell; of sweeps of our choice, a stage has told."""
    automatic = solve.environment.automatic
    parts = (solve.scheme,) if automatic else (solve.scheme, solve.sweeper)
    return [event for part in parts if isinstance(part, HasEvents) for event in part.events]


def answered(solve: Solve, result: SolveResult, answer: Answer) -> SolveResult:
    """Return the result with the answer of a stage in place of what the sweeps have come to.

    Parameters
    ----------
    solve
        A solve that has ended.
    result
        That of its sweeps.
    answer
        What a stage has found.
    """
    environment, outcome, residual = solve.environment, solve.outcome, result.residual
    if not answer.in_place:
        residual = _residual_of(answer.values, solve)
    named = environment.method is Method.GMRES
    how = answer.event or Kind.TOOK_OVER(
        method=result.method,
        sweeps=outcome.iterations,
        error=outcome.error_estimate,
        by=answer.name,
    )
    if named:
        how = Kind.ENDED_BY(by=answer.name)
    return replace(
        result,
        values=answer.values,
        status=_status(answer, environment),
        residual=residual,
        change=answer.error,
        error_estimate=answer.error,
        cost=answer.cost or result.cost,
        rounding=0.0,
        finished_by="" if named else answer.name,
        events=(*result.events, how),
    )


def _status(answer: Answer, environment: SolverEnvironment) -> Status:
    scale, accepted = largest_value(answer.values, environment.absolute), environment.epsilon
    if environment.method is not Method.GMRES:
        accepted = max(accepted, DIRECT_ERROR * scale)
    if answer.error <= accepted:
        return Status.CONVERGED
    return Status.CHANGE_ONLY if answer.error <= NO_DIGITS * scale else Status.NOT_CONVERGED


def is_better(answer: Answer | None, outcome: Iteration, error: float) -> bool:
    """Return whether a solve has come to values whose error is smaller than another.

    Parameters
    ----------
    answer
        Of a stage; None for none.
    outcome
        Of the sweeps, which counts where there is no answer.
    error
        The other.
    """
    if answer is not None:
        return answer.error < error
    return outcome.status is Status.CONVERGED or outcome.error_estimate < error


def _residual_of(values: FloatArray, solve: Solve) -> float:
    """Return the residual of values, by whoever has the rows laid out, if there is room."""
    check: Sweeper | None = None
    if isinstance(solve.sweeper, HasTwin):
        with suppress(DeviceMemoryError):
            check = solve.sweeper.twin(values, -1.0)
    if check is None:
        scheme: Scheme[Any] = solve.scheme if solve.system.expanded is None else CpuEngine()
        check = scheme.sweeper(replace(solve.system, start=values), -1.0, True)
    return check.residual()


def judged(result: SolveResult, system: System) -> SolveResult:
    """Return the result with `Status.DIVERGED` where the iterate left the numbers.

    Infinities that were there to begin with are meant (an infinite reward); a residual that is not
    a number never is.

    Parameters
    ----------
    result
        A solve that has ended.
    system
        What was solved.
    """
    if not left_the_numbers(result.values, system.start) and np.isfinite(result.residual):
        return result
    return replace(result, status=Status.DIVERGED)
