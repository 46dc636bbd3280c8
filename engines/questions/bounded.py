"""Questions with a bound on steps, for discrete-time Markov chains and decision processes.

Each is a number of sweeps known beforehand; a sweep that changes nothing at all ends them sooner.
`error_estimate` is what rounding may have added; `residual` is 0: no equation is solved. Of an
environment only the device matters, and the measure of the error.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, MaskArray, left_the_numbers
from engines.devices.choice import choose_engine
from engines.errors import UnsupportedError
from engines.host.engine import CpuEngine
from engines.host.products import transposed
from engines.methods.iterate import BATCH_SECONDS, FIRST_BATCH
from engines.model.environment import SolverEnvironment
from engines.model.events import steady_at
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Measure, Progress, SweepReport
from engines.model.result import ExactValues, SolveResult, Status
from engines.model.step_rewards import step_rewards
from engines.proofs import exact
from engines.solve.system import sweeper_or_cpu
from engines.systems.one_sided import (
    LONGEST_BATCH,
    Direction,
    Sweeper,
    SweepSystem,
    rows_of_states,
)
from engines.systems.plain import direction_of, plain_system
from engines.systems.two_sided import UNIT_ROUNDOFF

NO_CHANGE = float(np.nextafter(0.0, 1.0))
"""A change below the smallest positive number is none."""

ROUNDING_A_SWEEP = 2.0 * UNIT_ROUNDOFF
"""What a sweep adds to the relative error: all terms are positive."""


def next_probabilities(
    model: ExplicitModel,
    target: MaskArray,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
) -> SolveResult:
    """Compute P(X target), the probability that the next state is a target.

    Parameters
    ----------
    model
        A DTMC, an MDP, or a CTMC: then of its embedded chain, in which a state without
        transitions is its own successor.
    target
        Shape (states,).
    environment, direction
        As in `engines.questions.until.until_probabilities`.

    Returns
    -------
    The result; its values have shape (states,).

    Raises
    ------
    ValueError
        For an MDP without a direction.
    """
    start = target.astype(np.float64)
    if model.kind is ModelKind.CTMC:
        exits = model.exit_rates
        states = rows_of_states(exits > 0.0)
        rates = model.matrix if states is None else model.matrix.select_rows(states)
        exits = exits if states is None else exits[states]
        system = SweepSystem(rates.divide_rows(exits), start, states=states)
    else:
        direction = direction_of(model, direction)
        system = plain_system(model, _everywhere(model), start, None, direction)
    result = _with_sure_states(_sweep(system, 1, environment), system)
    exactly = exact.step_bounded(model, _everywhere(model), start, 1, direction=direction)
    return replace(result, exactly=exactly)


def _with_sure_states(result: SolveResult, system: SweepSystem) -> SolveResult:
    """Put 1 where only targets may follow, and less elsewhere, whatever the sums are rounded to."""
    matrix = system.matrix
    away = (matrix.values > 0.0) & (system.start[matrix.columns] == 0.0)
    sure = np.bincount(matrix.row_of_entry()[away], minlength=matrix.num_rows) == 0
    sure &= matrix.row_lengths() > 0
    if system.group_offsets is not None:
        every = np.logical_and if system.direction is Direction.MINIMISE else np.logical_or
        sure = every.reduceat(sure, system.group_offsets[:-1])
    values = result.values.copy()
    rows = slice(None) if system.states is None else system.states
    values[rows] = np.where(sure, 1.0, np.minimum(values[rows], np.nextafter(1.0, 0.0)))
    return replace(result, values=values)


def bounded_until(
    model: ExplicitModel,
    remain: MaskArray,
    target: MaskArray,
    steps: int,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    lower: int = 0,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute P(remain U[lower,steps] target) of every state.

    Parameters
    ----------
    model
        A DTMC or an MDP.
    remain, target
        The two sides of the until, shape (states,).
    steps
        Upper bound, included.
    lower
        Lower bound, included.
    environment, direction, progress
        As in `engines.questions.until.until_probabilities`.

    Returns
    -------
    The result; its values have shape (states,).

    Raises
    ------
    UnsupportedError
        For a CTMC.
    ValueError
        For bounds that are no interval, or an MDP without a direction.
    """
    _require_steps(model, "step-bounded until")
    if not 0 <= lower <= steps:
        raise ValueError(f"[{lower}, {steps}] is no interval of steps from 0 on")
    start = target.astype(np.float64)
    active = remain & ~target
    direction = direction_of(model, direction)
    system = plain_system(model, active, start, None, direction)
    exactly = exact.step_bounded(model, active, start, steps - lower, direction=direction)
    last = _sweep(system, steps - lower, environment, progress).at_most(1.0)
    last = replace(last, exactly=exactly)
    if lower == 0:
        return last
    first = _after(model, remain, last, lower, environment, direction, progress)
    error = first.error_estimate + last.error_estimate
    return replace(SolveResult.combined(first.values, [last, first], error), exactly=first.exactly)


def after(
    model: ExplicitModel,
    remain: MaskArray,
    values: FloatArray,
    steps: int,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    exactly: ExactValues | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute E[values(X_steps); the states before that are in `remain`] of every state.

    Applied to the probabilities of ``remain U target`` it gives those of
    ``remain U>=steps target``.

    Parameters
    ----------
    model
        A DTMC or an MDP.
    remain
        Where to stay for so many steps, shape (states,).
    values
        Shape (states,).
    steps
        At least 0.
    environment, direction, progress
        As in `bounded_until`.
    exactly
        Computes the values' exact ones; None for no way, unless all are 0 or 1.

    Raises
    ------
    UnsupportedError
        For a CTMC.
    ValueError
        For a negative number of steps, or an MDP without a direction.
    """
    _require_steps(model, "step-bounded operators")
    known = replace(SolveResult.exact(values, ""), exactly=exactly)
    if exactly is None and np.isin(known.values, (0.0, 1.0)).all():
        exactly = exact.step_bounded(model, _everywhere(model), known.values, 0)
        known = replace(known, exactly=exactly)
    return _after(model, remain, known, steps, environment, direction, progress)


def _after(
    model: ExplicitModel,
    remain: MaskArray,
    last: SolveResult,
    steps: int,
    environment: SolverEnvironment,
    direction: Direction | None,
    progress: Progress | None,
) -> SolveResult:
    """Return the values after more steps before those of `last`, within `remain`."""
    # A step from outside `remain` is worth nothing, which a row without entries says.
    if not remain.all():
        staying = model.rows_of(remain)[model.matrix.row_of_entry()]
        model = replace(model, matrix=model.matrix.select_entries(staying))
    start, everywhere = last.values, _everywhere(model)
    direction = direction_of(model, direction)
    system = plain_system(model, everywhere, start, None, direction)
    result = _sweep(system, steps, environment, progress).at_most(float(start.max()))
    exactly = last.exactly and exact.step_bounded(
        model, everywhere, start, steps, direction=direction, before_that=last.exactly
    )
    return replace(result, exactly=exactly)


def cumulative_rewards(
    model: ExplicitModel,
    rewards: RewardStructure,
    steps: int,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the expected reward of the first `steps` steps, R[C<=steps], of every state.

    Parameters
    ----------
    model
        A DTMC or an MDP.
    rewards
        Rewards of states and, for MDPs, of choices; each earned when a step begins.
    steps
        At least 0.
    environment, direction, progress
        As in `bounded_until`.

    Raises
    ------
    InvalidModelError
        For rewards that are negative or not finite.
    UnsupportedError
        For a CTMC.
    ValueError
        For a negative number of steps, or an MDP without a direction.
    """
    _require_steps(model, "rewards of a number of steps")
    start, earned = np.zeros(model.num_states), step_rewards(model, rewards)
    everywhere, direction = _everywhere(model), direction_of(model, direction)
    system = plain_system(model, everywhere, start, earned, direction)
    exactly = exact.step_bounded(model, everywhere, start, steps, earned, direction)
    return replace(_sweep(system, steps, environment, progress), exactly=exactly)


def instantaneous_rewards(
    model: ExplicitModel,
    rewards: RewardStructure,
    steps: int,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the expected state reward after exactly `steps` steps, R[I=steps], of every state.

    Parameters
    ----------
    model
        A DTMC or an MDP.
    rewards
        Those of states count; those of choices do not.
    steps
        At least 0.
    environment, direction, progress
        As in `bounded_until`.

    Raises
    ------
    InvalidModelError
        For rewards that are negative or not finite.
    UnsupportedError
        For a CTMC.
    ValueError
        For a negative number of steps, or an MDP without a direction.
    """
    _require_steps(model, "rewards after a number of steps")
    step_rewards(model, rewards)
    start = np.asarray(rewards.state_rewards, dtype=np.float64)
    everywhere, direction = _everywhere(model), direction_of(model, direction)
    system = plain_system(model, everywhere, start, None, direction)
    exactly = exact.step_bounded(model, everywhere, start, steps, direction=direction)
    return replace(_sweep(system, steps, environment, progress), exactly=exactly)


def distribution_after(
    model: ExplicitModel,
    initial: FloatArray,
    steps: int,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the distribution over states after a number of steps.

    Parameters
    ----------
    model
        A DTMC.
    initial
        The distribution before the first step, shape (states,).
    steps
        At least 0.
    environment, progress
        As in `bounded_until`.

    Raises
    ------
    UnsupportedError
        For another kind of model.
    ValueError
        For a negative number of steps.
    """
    if model.kind is not ModelKind.DTMC:
        raise UnsupportedError(
            f"transient probabilities after steps: for DTMCs; the model is a {model.kind}"
        )
    matrix = transposed(model.matrix, model.matrix.values)
    system = SweepSystem(matrix, np.asarray(initial, dtype=np.float64))
    return _sweep(system, steps, environment, progress, notes=environment.notes_steady_state)


def _require_steps(model: ExplicitModel, what: str) -> None:
    if model.kind is ModelKind.CTMC:
        raise UnsupportedError(f"{what}: for DTMCs and MDPs; a {model.kind} has no steps")


def _everywhere(model: ExplicitModel) -> MaskArray:
    return np.ones(model.num_states, dtype=np.bool_)


def _sweep(
    system: SweepSystem,
    steps: int,
    environment: SolverEnvironment,
    progress: Progress | None = None,
    *,
    notes: bool = False,
) -> SolveResult:
    """Make so many sweeps, or fewer where one changes nothing.

    With `notes`, no more are counted than up to the first that changes less than epsilon.
    """
    if steps < 0:
        raise ValueError(f"a number of steps must be at least 0, not {steps}")
    method = "Power method" if system.group_offsets is None else "Value iteration"
    if steps == 0 or system.num_updates == 0:
        exact = SolveResult.exact(system.start.copy(), method)
        return replace(exact, iterations=steps if environment.repeats_prism else 0)
    started = time.perf_counter()
    engine, chosen = choose_engine(environment, system, steps)
    on_cpu = CpuEngine(environment.matrix_format)
    absolute = environment.absolute or not notes
    sweeper, prepared = sweeper_or_cpu(engine, system, NO_CHANGE, absolute, on_cpu)
    in_double = environment.double_instead("the error of bounded steps is proven")
    setup = time.perf_counter() - started
    little = environment.epsilon if notes else 0.0
    done, change, steady = _repeated(sweeper, steps, little, absolute, progress)
    values = sweeper.values()
    overflown = left_the_numbers(values, system.start)
    rounding = done * ROUNDING_A_SWEEP
    return SolveResult(
        values=values,
        status=Status.DIVERGED if overflown else Status.CONVERGED,
        method=method,
        # Those that are left out would change nothing.
        iterations=steady or (steps if environment.repeats_prism else done),
        change=change,
        residual=0.0,
        error_estimate=rounding * float(np.abs(values).max()) if environment.absolute else rounding,
        seconds=time.perf_counter() - started,
        setup_seconds=setup,
        sweeping_seconds=sweeper.seconds,
        cost=sweeper.cost,
        events=(prepared or chosen) + in_double + steady_at(steady),
    )


def _repeated(
    sweeper: Sweeper, steps: int, little: float, absolute: bool, progress: Progress | None
) -> tuple[int, float, int]:
    """Make so many sweeps, or fewer where one changes nothing.

    Returned are how many were made, what the last of them changed, and the first that changed less
    than `little`, 0 for none.
    """
    started = time.perf_counter()
    done, change, steady, batch = 0, np.inf, 0, FIRST_BATCH
    while done < steps and change > 0.0:
        batch_started = time.perf_counter()
        changes = sweeper.run(min(batch, steps - done))
        few = np.flatnonzero(changes < little)
        if len(few) and not steady:
            steady = done + 1 + int(few[0])
        done += len(changes)
        change = float(changes[-1])
        now = time.perf_counter()
        if progress is not None:
            how = (Measure.STEP, absolute)
            left = steps - done
            progress(SweepReport(done, changes, now - started, *how, sweeps_to_go=left))
        if now - batch_started < BATCH_SECONDS:
            batch = min(2 * batch, LONGEST_BATCH)
    return done, change, steady
