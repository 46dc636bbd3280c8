"""A solve between two bounds, by interval iteration or by optimistic value iteration."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray
from engines.devices.two_sided import two_sided_sweeper
from engines.model.environment import Method, SolverEnvironment
from engines.model.events import Kind
from engines.model.progress import Progress
from engines.model.result import ExactValues, SolveResult, Status
from engines.solve.certified import certify, may_certify
from engines.solve.narrow import (
    Batches,
    Narrowing,
    TimedNarrowing,
    largest_error,
    measured_width,
    narrow,
)
from engines.solve.optimistic import narrow_by_guesses
from engines.solve.topological_intervals import narrow_topologically
from engines.systems.one_sided import SweepSystem
from engines.systems.two_sided import (
    ROUNDING_SLACK,
    TwoSidedSystem,
    without_self_loops,
)


def solve_two_sided(
    plain: SweepSystem,
    upper: FloatArray,
    environment: SolverEnvironment,
    *,
    slack: int = ROUNDING_SLACK,
    exactly: ExactValues | None = None,
    solve: Callable[[], tuple[FloatArray, float]] | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Bound the one solution of x = b + A x, all of whose numbers are not negative.

    Parameters
    ----------
    plain
        The equations, as `engines.systems.plain.plain_system` returns them; what they start from
        is a lower bound.
    upper
        An upper bound of each state, shape (states,). Where it is infinite, optimistic value
        iteration guesses one, as `Method.OPTIMISTIC` asks for everywhere.
    environment
        The width of the bounds, relative or absolute, as epsilon; limits, device, sub-switches.
    slack
        Roundings that an entry of the matrix may have suffered.
    exactly, solve
        As in `engines.solve.certified.certify`, which takes over where sweeps are too slow.
    progress
        Called after each batch of sweeps, with the width.

    Returns
    -------
    The result, with `bounds`; its error estimate is a bound.

    Raises
    ------
    ConvergenceError
        For bounds that cross, or sweeps that are not monotonic where that is checked.
    """
    started = time.perf_counter()
    options, absolute = environment.interval, environment.absolute
    chain = plain.group_offsets is None
    jacobi = chain and environment.method is not Method.POWER
    guessing = environment.method is Method.OPTIMISTIC or bool(np.isinf(upper).any())
    system = TwoSidedSystem(
        without_self_loops(plain) if jacobi else plain,
        # What is not verified yet must not be infinite: 0 times that is no number.
        np.where(np.isfinite(upper), upper, 0.0),
        options.monotonic_below,
        options.monotonic_above or guessing,
        slack,
    )
    prepared = time.perf_counter() - started
    if environment.topological and not guessing:
        done = narrow_topologically(
            system, environment, ours_to_choose=environment.unnamed, progress=progress
        )
    else:
        trivial_upper = upper if guessing else None
        done = _narrow_together(system, plain, trivial_upper, environment, exactly, solve, progress)
    solved = slice(None) if plain.states is None else plain.states
    outcome = done.narrowing
    lower, upper = outcome.lower, outcome.upper
    midpoint = options.select_midpoint and bool(np.isfinite(upper[solved]).all())
    sweeps = Method.JACOBI if jacobi else Method.POWER if chain else Method.VALUE_ITERATION
    values = lower + (upper - lower) / 2.0 if midpoint else lower
    return SolveResult(
        values=values,
        status=outcome.status,
        method=f"{Method.OPTIMISTIC if guessing else Method.INTERVAL} ({sweeps})",
        iterations=outcome.iterations,
        change=measured_width(lower[solved], upper[solved], absolute),
        # A sweep keeps an iterate between the bounds there.
        residual=measured_width(lower[solved], upper[solved], True),
        error_estimate=largest_error(values[solved], lower[solved], upper[solved], absolute),
        seconds=time.perf_counter() - started,
        setup_seconds=prepared + done.setup_seconds,
        sweeping_seconds=done.sweeping_seconds,
        cost=done.cost,
        events=outcome.events,
        two_sided=True,
        bounds=(lower, upper),
        finished_by=outcome.finished_by,
        exactly=exactly,
        what_iterates="Iterative method (interval iteration)",
    )


def _narrow_together(
    system: TwoSidedSystem,
    plain: SweepSystem,
    trivial_upper: FloatArray | None,
    environment: SolverEnvironment,
    exactly: ExactValues | None,
    solve: Callable[[], tuple[FloatArray, float]] | None,
    progress: Progress | None,
) -> TimedNarrowing:
    """Narrow the bounds of all states; where sweeps are too slow, around a direct solution.

    From upper bounds that may be infinite, bounds are guessed.
    """
    started = time.perf_counter()
    stop_below = environment.epsilon if trivial_upper is None else -1.0
    sweeper, events = two_sided_sweeper(system, environment, stop_below)
    setup = time.perf_counter() - started
    batches = Batches(sweeper, environment, progress)

    def swept(may_give_up: bool) -> Narrowing:
        rest = environment, may_give_up, progress, batches
        if trivial_upper is None:
            return narrow(sweeper, *rest)
        return narrow_by_guesses(sweeper, trivial_upper, *rest)

    outcome = swept(environment.unnamed and may_certify(plain))
    if outcome.given_up:
        certified = certify(plain, environment, outcome, system.slack, solve, exactly)
        outcome = certified or swept(False)
    if environment.topological:
        events = (*events, Kind.TOGETHER(what="guesses"))
    outcome = replace(outcome, events=events + outcome.events)
    return TimedNarrowing(outcome, sweeper.cost, setup, sweeper.seconds)


def bounded_result(
    lower: FloatArray,
    upper: FloatArray,
    parts: Sequence[SolveResult],
    environment: SolverEnvironment,
) -> SolveResult:
    """Return the result of a question whose bounds were put together from several solves.

    Parameters
    ----------
    lower, upper
        The bounds, each of shape (states,).
    parts
        The solves; none where the bounds needed none.
    environment
        The measure of widths, and whether the midpoint is the value.
    """
    width = measured_width(lower, upper, environment.absolute)
    midpoint = environment.interval.select_midpoint and bool(np.isfinite(upper).all())
    values = lower + (upper - lower) / 2.0 if midpoint else lower
    if not parts:
        result = SolveResult.exact(values, environment.method)
    else:
        error = largest_error(values, lower, upper, environment.absolute)
        result = SolveResult.combined(values, parts, error)
    status = result.status
    if width == 0.0 or width < environment.epsilon:
        status = Status.CONVERGED
    elif status is Status.CONVERGED:
        status = Status.CHANGE_ONLY
    return replace(result, change=width, status=status, two_sided=True, bounds=(lower, upper))
