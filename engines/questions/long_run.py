"""Long-run answers over all bottom strongly connected components (BSCCs): S and R [ S ]."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, MaskArray, each_once, sums_by_row
from engines.errors import UnsupportedError
from engines.exploration.run_matrix import runs_of_matrix
from engines.graph.components import Components, bsccs
from engines.graph.prob01 import prob1
from engines.model.decided import decided_values
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import step_rewards
from engines.proofs import exact
from engines.questions.component_averages import Averages, component_averages
from engines.questions.diagram_long_run import LongRun
from engines.questions.reachability import solve_reachability
from engines.questions.reachability_rewards import reachability_rewards
from engines.solve.two_sided import bounded_result
from engines.systems.two_sided import ROUNDING_SLACK, UNIT_ROUNDOFF

_T = TypeVar("_T", bound=np.generic)

OF_AVERAGES, OF_ENDINGS = 0.5, 0.4
"""Parts of a width for the averages of the BSCCs, and for where the transient states end."""


def long_run_probabilities(
    model: ExplicitModel,
    states: MaskArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the long-run probability of being in the given states, from every state.

    For a CTMC it is a share of time; for a periodic DTMC the mean over a period.

    Parameters
    ----------
    model, environment, progress
        As in `long_run_rewards`.
    states
        Shape (states,).

    Returns
    -------
    The result; its values have shape (states,). See `long_run_rewards` on how it is put together.

    Raises
    ------
    ConvergenceError, UnsupportedError
        As `long_run_rewards`.
    """
    refuse_choices(model, "long-run probabilities")
    return _long_run_values(model, states.astype(np.float64), environment, progress)


def long_run_rewards(
    model: ExplicitModel,
    rewards: RewardStructure,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the long-run reward of a step (DTMC) or a unit of time (CTMC), from every state.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    rewards
        Its rewards.
    environment, progress
        As in `engines.questions.until.until_probabilities`, for each of several solves. Bounds of
        rewards given by hand are not looked at.

    Returns
    -------
    The result; its values have shape (states,). With `bounds` its error estimate is a bound.

    Raises
    ------
    ConvergenceError
        As `engines.questions.reachability_rewards.reachability_rewards`, for bounds.
    InvalidModelError
        For rewards that are negative or not finite, and for rewards that do not fit the model.
    UnsupportedError
        For an MDP, and for a method that does not fit.

    Notes
    -----
    The value of a BSCC is the mean of its states' rewards under its steady state. A transient state
    has the mean of the BSCCs' values under the probabilities of ending in each: one solve with the
    BSCCs' values as known ones, not one for each BSCC. States that can only end in BSCCs of the
    largest, or of the smallest, value have that value without rounding.

    The error estimate adds up those of both stages. Relative ones stay what they are in a mean;
    an absolute one of a steady state counts once for each state, times its reward.

    With bounds, the expected value of where a transient state ends is an expected reward: a step
    into a BSCC earns its value. One solve bounds it for the lower ends of all values; the upper
    ends exceed those at most by a factor, and by a difference, and so do the expectations. So three
    solves do, however many BSCCs there are.
    """
    refuse_choices(model, "long-run rewards")
    return _long_run_values(model, step_rewards(model, rewards), environment, progress)


def refuse_choices(model: ExplicitModel, what: str) -> None:
    """Raise if a question is about an MDP, whose long run depends on its strategy.

    Parameters
    ----------
    model
        The model.
    what
        What was asked for.

    Raises
    ------
    UnsupportedError
        Saying so.
    """
    if model.kind is ModelKind.MDP:
        raise UnsupportedError(f"{what} of an MDP depend on its strategy")


def _long_run_values(
    model: ExplicitModel,
    earned: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> SolveResult:
    unexpanded = _without_entries(model, environment)
    if unexpanded is not None:
        return unexpanded.average(earned, environment, progress)
    components = bsccs(model, environment)
    inner, ending = environment, components.count > 1 and not components.everywhere
    if environment.two_sided and ending:
        inner = replace(environment, epsilon=OF_AVERAGES * environment.epsilon)
    averages = component_averages(model, components, earned, inner, progress=progress)
    lower = _spread(averages.lower, components)
    upper = _spread(averages.upper, components) if environment.two_sided else lower
    sound = _spread(averages.decided, components)
    if np.isnan(each_once(lower)).any():
        # A named method has left the finite numbers, as its status tells; nothing is below NaN.
        return put_together(lower, averages.parts, averages.error, environment)
    recurrent = components.labels >= 0
    unknown = ~recurrent
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    for extreme in (averages.lower.min(), averages.lower.max()):
        if not unknown.any():
            break
        there = recurrent & (lower == extreme)
        only_there = prob1(model, everywhere, there, environment=environment) & unknown
        lower[only_there], upper[only_there] = extreme, upper[there].max()
        sound[only_there] = sound[there].all()
        unknown &= ~only_there
    if environment.two_sided:
        parts = list(averages.parts)
        if unknown.any():
            part = _bounded_endings(model, ~unknown, lower, averages, environment, progress)
            parts.append(part)
            assert part.bounds is not None
            lower[unknown], upper[unknown] = (bound[unknown] for bound in part.bounds)
        result = bounded_result(lower, upper, parts, environment)
    else:
        result = _with_endings(model, unknown, lower, averages, environment, progress)
        result = replace(result, decided=decided_values(result.values, sound))
    return replace(result, exactly=exact.long_run(model, earned, components.labels))


def _without_entries(model: ExplicitModel, environment: SolverEnvironment) -> LongRun | None:
    """Return the long run of a chain that is kept as runs, where they suffice for it."""
    runs = runs_of_matrix(model.matrix)
    if runs is None or environment.two_sided:
        return None
    if LongRun not in runs.kept:
        runs.kept[LongRun] = LongRun.of_runs(runs)
    long_run: LongRun = runs.kept[LongRun]
    return None if long_run.refusal(environment) else long_run


def _spread(of_component: NDArray[_T], components: Components) -> NDArray[_T]:
    """Return the value of each state's component, 0 for transient states, shape (states,).

    That of one component of all states is repeated in no memory of its own, and read-only.
    """
    labels = components.labels
    if components.count == 1 and components.everywhere:
        return np.broadcast_to(of_component[0], labels.shape)
    # The label -1 of transient states picks what is appended.
    return np.append(of_component, np.zeros(1, dtype=of_component.dtype))[labels]


def _with_endings(
    model: ExplicitModel,
    unknown: MaskArray,
    values: FloatArray,
    averages: Averages,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> SolveResult:
    """Return the values, the unknown ones solved for, with the errors of both stages."""
    if not unknown.any():
        result = put_together(values, averages.parts, averages.error, environment)
        return replace(result, trusted_above=0.0)
    part = solve_reachability(model, unknown, values, environment, progress=progress)
    # Relative errors multiply: those of the averages may be large where a method was named.
    growth = 1.0 if environment.absolute else 1.0 + averages.error
    error = averages.error + part.error_estimate * growth
    result = put_together(part.values, [*averages.parts, part], error, environment)
    return replace(result, trusted_above=part.trusted_above)


def put_together(
    values: FloatArray, parts: list[SolveResult], error: float, environment: SolverEnvironment
) -> SolveResult:
    """Return the result of a question that took several solves, or none.

    Parameters
    ----------
    values
        Shape (states,).
    parts
        The solves.
    error
        Estimated largest error of the values.
    environment
        Names the method.
    """
    if parts:
        return SolveResult.combined(values, parts, error)
    result = SolveResult.exact(values, environment.method)
    return replace(result, error_estimate=error, unrounded=error == 0.0)


def _bounded_endings(
    model: ExplicitModel,
    known: MaskArray,
    least: FloatArray,
    averages: Averages,
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
    inner = replace(environment, epsilon=epsilon, interval=options)
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
