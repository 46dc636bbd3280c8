"""Long-run answers between two bounds, over all bottom components (BSCCs): S and R [ S ]."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, MaskArray, sums_by_row
from engines.errors import UnsupportedError
from engines.graph.components import bsccs
from engines.graph.prob01 import prob1
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import step_rewards
from engines.proofs import exact
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.two_sided_steady_state import AverageBounds, component_average_bounds
from engines.solve.two_sided import bounded_result
from engines.systems.two_sided import ROUNDING_SLACK, UNIT_ROUNDOFF

OF_AVERAGES, OF_ENDINGS = 0.5, 0.4
"""Parts of epsilon for the averages of the BSCCs, and for where the transient states end."""


def long_run_probability_bounds(
    model: ExplicitModel,
    states: MaskArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Bound the long-run probability of being in the given states, from every state.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    states
        Shape (states,).
    environment, progress
        As in `long_run_reward_bounds`.

    Returns
    -------
    The result, with `bounds`.

    Raises
    ------
    ConvergenceError, UnsupportedError
        As `long_run_reward_bounds`.
    """
    return _bounds(model, states.astype(np.float64), environment, progress)


def long_run_reward_bounds(
    model: ExplicitModel,
    rewards: RewardStructure,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Bound the long-run reward of a step (DTMC) or a unit of time (CTMC), from every state.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    rewards
        Its rewards.
    environment
        The width of the intervals, relative or absolute, as epsilon; limits, device. The methods
        are those of `engines.questions.until.until_probabilities`; bounds of rewards given by hand
        are not looked at.
    progress
        Called after each batch of sweeps of each solve.

    Returns
    -------
    The result, with `bounds`; its error estimate is a bound.

    Raises
    ------
    ConvergenceError
        As `reachability_rewards`.
    InvalidModelError
        For rewards that are negative or not finite, and for rewards that do not fit the model.
    UnsupportedError
        For an MDP, and for a method that does not fit.

    Notes
    -----
    The averages a of the BSCCs lie between bounds, by `component_average_bounds`. The value of a
    transient state is the expected a of the BSCC where it ends. That is an expected reward: a step
    into a BSCC earns its a. One solve bounds it for the lower ends of all a; the upper ends exceed
    those at most by a factor, and by a difference, and so do the expectations. So three solves do,
    however many BSCCs there are.
    """
    return _bounds(model, step_rewards(model, rewards), environment, progress)


def _bounds(
    model: ExplicitModel,
    earned: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> SolveResult:
    if model.kind is ModelKind.MDP:
        raise UnsupportedError("long-run values of an MDP depend on its strategy")
    components = bsccs(model)
    recurrent = components.labels >= 0
    ending = not bool(recurrent.all()) and components.count > 1
    share = OF_AVERAGES if ending else 1.0
    averages = component_average_bounds(
        model,
        components,
        earned,
        replace(environment, epsilon=share * environment.epsilon),
        progress=progress,
    )
    lower, upper = np.zeros(model.num_states), np.zeros(model.num_states)
    lower[recurrent] = averages.lower[components.labels[recurrent]]
    upper[recurrent] = averages.upper[components.labels[recurrent]]
    known = recurrent.copy()
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    for extreme in (averages.lower.min(), averages.lower.max()):
        if known.all():
            break
        there = recurrent & (lower == extreme)
        only_there = prob1(model, everywhere, there, environment=environment) & ~known
        lower[only_there], upper[only_there] = extreme, upper[there].max()
        known |= only_there
    parts = list(averages.parts)
    if not known.all():
        result = _expected_endings(model, known, lower, averages, environment, progress)
        parts.append(result)
        assert result.bounds is not None
        lower[~known], upper[~known] = (bound[~known] for bound in result.bounds)
    result = bounded_result(lower, upper, parts, environment)
    return replace(result, exactly=exact.long_run(model, earned, components.labels))


def _expected_endings(
    model: ExplicitModel,
    known: MaskArray,
    least: FloatArray,
    averages: AverageBounds,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> SolveResult:
    """Return bounds of the expected average where a state ends; `least` has those known."""
    matrix = model.matrix
    row = matrix.row_of_entry()
    entering = np.where(known, least, 0.0)[matrix.columns]
    earned = sums_by_row(row, matrix.values * entering, matrix.num_rows)
    # What is earned is off by a factor of at most this, and so is what is expected.
    rounding = (int(matrix.row_lengths().max()) + ROUNDING_SLACK) * UNIT_ROUNDOFF
    smallest, greatest = float(averages.lower.min()), float(averages.upper.max())
    options = replace(environment.interval, lower=None, upper=greatest * (1.0 + 2.0 * rounding))
    epsilon = OF_ENDINGS * environment.epsilon
    inner = replace(environment, epsilon=epsilon, bounds=True, interval=options)
    result = reachability_rewards(
        model, RewardStructure("", earned), known, inner, progress=progress
    )
    assert result.bounds is not None
    lower, upper = result.bounds
    excess = float(np.max(averages.upper - averages.lower))
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(averages.lower > 0.0, averages.upper / averages.lower, np.inf)
    factor = float(np.max(np.where(averages.upper > 0.0, factors, 1.0)))
    above = np.minimum(upper * factor if np.isfinite(factor) else np.inf, upper + excess)
    # One unit more for each operation behind the solve.
    outwards = rounding + 4.0 * UNIT_ROUNDOFF
    lower = np.maximum(lower * (1.0 - outwards), smallest)
    upper = np.minimum(above * (1.0 + outwards), greatest)
    return replace(result, bounds=(lower, np.maximum(upper, lower)))
