"""From a prepared system to a result: choose the engine, sweep, fall back, report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engines.backend import choose_engine
from engines.cpu.engine import CpuEngine
from engines.environment import SolverEnvironment
from engines.errors import DeviceMemoryError
from engines.formats.csr import FloatArray
from engines.iterate import Iteration, Progress, iterate, stop_threshold
from engines.result import SolveResult, Status, SweepCost
from engines.system import Engine, Sweeper, SweepSystem

SLOW_AFTER = 5_000
"""Sweeps after which an automatic solve may turn to its direct method."""

DIRECT_ERROR = 1e-8
"""A direct solution is taken up to this relative error, which the condition of a system may leave
it with however small epsilon is."""

Direct = Callable[[FloatArray], tuple[FloatArray, float]]
"""Solves directly, from the present iterate to the solution and its estimated relative error."""


def solve_system(
    system: SweepSystem,
    environment: SolverEnvironment,
    method: str,
    *,
    direct: Direct | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Solve a system by sweeps.

    Parameters
    ----------
    system
        What to solve.
    environment
        Method, termination, limits, device.
    method
        What the log calls the method.
    direct
        For automatic solves: what to do when the sweeps contract too slowly.
    progress
        Called after each batch of sweeps.

    Returns
    -------
    The result, whose status the caller must look at.
    """
    started = time.perf_counter()
    engine, note = choose_engine(environment, system)
    sweeper, note = _prepare(engine, system, environment, note)
    setup = time.perf_counter() - started

    def give_up(iterations: int, expected: float) -> bool:
        stuck = expected == float("inf") or expected > SLOW_AFTER
        return direct is not None and iterations >= SLOW_AFTER and stuck

    outcome = iterate(sweeper, environment, progress=progress, give_up=give_up)
    swept = time.perf_counter() - started
    result = SolveResult(
        values=sweeper.values(),
        status=outcome.status,
        method=method,
        iterations=outcome.iterations,
        change=outcome.change,
        residual=sweeper.residual(),
        error_estimate=outcome.error_estimate,
        seconds=swept,
        setup_seconds=setup,
        sweeping_seconds=sweeper.seconds,
        cost=sweeper.cost,
        note=note,
    )
    if outcome.given_up and direct is not None:
        result = _solve_directly(result, outcome, system, direct, environment.epsilon)
        result = replace(result, seconds=time.perf_counter() - started)
    return _judged(result)


def _prepare(
    engine: Engine, system: SweepSystem, environment: SolverEnvironment, note: str
) -> tuple[Sweeper, str]:
    threshold = stop_threshold(environment)
    try:
        return engine.sweeper(system, threshold, environment.absolute), note
    except DeviceMemoryError as error:
        sweeper = CpuEngine().sweeper(system, threshold, environment.absolute)
        return sweeper, f"{error}; solving on the CPU"


def _solve_directly(
    result: SolveResult, outcome: Iteration, system: SweepSystem, direct: Direct, epsilon: float
) -> SolveResult:
    try:
        values, error_estimate = direct(result.values)
    except (MemoryError, RuntimeError) as error:
        status = Status.CHANGE_ONLY if outcome.status is Status.CHANGE_ONLY else result.status
        return replace(result, status=status, note=f"sparse LU failed: {error}")
    check = CpuEngine().sweeper(replace(system, start=values), -1.0, True)
    residual = check.residual()
    accepted = max(epsilon, DIRECT_ERROR)
    return replace(
        result,
        values=values,
        status=Status.CONVERGED if error_estimate <= accepted else Status.CHANGE_ONLY,
        residual=residual,
        change=error_estimate,
        error_estimate=error_estimate,
        cost=SweepCost("CPU", "SuperLU", "csc", 0),
        note=f"{result.method} contracts too slowly here ({outcome.iterations} sweeps, expected "
        f"error still {outcome.error_estimate:.1e}): solved by sparse LU",
    )


def _judged(result: SolveResult) -> SolveResult:
    """Return the result with `Status.DIVERGED` where the iterate left the numbers.

    Infinities may be meant (an infinite reward); a residual that is not a number never is.
    """
    if not np.isnan(result.values).any() and np.isfinite(result.residual):
        return result
    return replace(result, status=Status.DIVERGED)
