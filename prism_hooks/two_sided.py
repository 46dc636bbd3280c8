"""Bounds instead of estimates, where PRISM's interval iteration is asked for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.errors import UnsupportedError
from engines.model.environment import BoundMethod, IntervalOptions, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.questions.distribution_bounds import steady_state_distribution_bounds
from engines.questions.intervals import reachability_reward_bounds, until_bounds
from engines.questions.long_run_bounds import long_run_reward_bounds
from engines.questions.total_reward_bounds import total_reward_bounds
from prism_hooks.questions import Question, given, initial_distribution

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""What a division by an exit rate, and its reversal, change a reward by at most, relatively."""


def interval_options(intervals: Any) -> IntervalOptions:
    """Return the sub-switches that a `prismgpu.Intervals` holds.

    Parameters
    ----------
    intervals
        The Java object.
    """
    return IntervalOptions(
        bound_method=BoundMethod(str(intervals.boundMethod)),
        lower=_bound(intervals.lower),
        upper=_bound(intervals.upper),
        select_midpoint=bool(intervals.selectMidpoint),
        monotonic_below=bool(intervals.monotonicBelow),
        monotonic_above=bool(intervals.monotonicAbove),
        check_monotonic=bool(intervals.checkMonotonic),
    )


def _bound(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


def reachability_bounds(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    """Answer the task "reachability" by a method that has bounds.

    Parameters
    ----------
    model
        The model; for the embedded chain of a CTMC, the CTMC.
    asked
        The question.
    environment
        Method, width, limits, device, sub-switches.
    progress
        Called after each batch of sweeps.

    Raises
    ------
    UnsupportedError
        For known values other than those that the graph decides.
    """
    start = given(asked.start, "known values")
    if asked.rewards is None:
        target = _known(asked, start, 1.0, otherwise=0.0)
        return until_bounds(
            model, asked.states, target, environment, direction=asked.direction, progress=progress
        )
    target = _known(asked, start, 0.0, otherwise=np.inf)
    embedded = model.kind is ModelKind.CTMC
    if embedded:
        # PRISM has divided by the exit rates; the engines do so themselves.
        asked = replace(asked, rewards=asked.rewards * model.exit_rates)
    result = reachability_reward_bounds(
        model,
        asked.reward_structure(model),
        target,
        environment,
        direction=asked.direction,
        progress=progress,
    )
    return _widened(result, environment) if embedded else result


def average_bounds(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    """Answer the task "long-run average" by a method that has bounds.

    Parameters
    ----------
    model, asked, environment, progress
        As in `reachability_bounds`.

    Raises
    ------
    UnsupportedError
        For rewards below 0.
    """
    rewards = given(asked.rewards, "rewards")
    if (rewards < 0.0).any():
        raise UnsupportedError("bounds of rewards below 0")
    result = long_run_reward_bounds(
        model, asked.reward_structure(model), environment, progress=progress
    )
    # What was asked for is what is claimed: tests compare as many digits as that.
    return replace(result, error_estimate=max(result.error_estimate, environment.epsilon))


def distribution_bounds(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    """Answer the task "long-run distribution" by a method that has bounds.

    Parameters
    ----------
    model, asked, environment, progress
        As in `reachability_bounds`.

    Raises
    ------
    UnsupportedError
        If the initial values are no distribution.
    """
    initial = initial_distribution(asked)
    return steady_state_distribution_bounds(model, initial, environment, progress=progress)


def total_bounds(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    """Answer the task "total reward" by a method that has bounds.

    Parameters
    ----------
    model, asked, environment, progress
        As in `reachability_bounds`.

    Raises
    ------
    UnsupportedError
        For a strategy.
    """
    if asked.wants_strategy:
        raise UnsupportedError("bounds with a strategy")
    return total_reward_bounds(
        model,
        asked.reward_structure(model),
        environment,
        direction=asked.direction,
        progress=progress,
    )


ANSWERS = {
    "reachability": reachability_bounds,
    "least reward": reachability_bounds,
    "long-run average": average_bounds,
    "long-run distribution": distribution_bounds,
    "total reward": total_bounds,
}
"""The tasks that have bounds, by the names that `prismgpu.Problem` gives them."""


def _known(asked: Question, start: FloatArray, value: float, *, otherwise: float) -> MaskArray:
    """Return the states known to have a value; all known states have that or the other one."""
    known = ~asked.states
    chosen: MaskArray = known & (start == value)
    if not (known & ~chosen & (start != otherwise)).any():
        return chosen
    raise UnsupportedError("bounds that start from given values of some states")


def _widened(result: SolveResult, environment: SolverEnvironment) -> SolveResult:
    """Return the result with room for the rounding of the rewards; the graph's has none."""
    if result.error_estimate == 0.0 or result.bounds is None:
        return result
    lower, upper = result.bounds
    largest = float(np.max(upper[np.isfinite(upper)], initial=0.0))
    widening = ROUNDING * (largest if environment.absolute else 1.0)
    return replace(
        result,
        bounds=(lower * (1.0 - ROUNDING), upper * (1.0 + ROUNDING)),
        error_estimate=result.error_estimate + widening,
    )
