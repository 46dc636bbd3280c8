"""Questions with a bound on time, for continuous-time Markov chains.

Their results carry in `error_estimate` the largest absolute error of truncating the sum of powers
and of rounding. Both are bounds, and the result has `bounds` and is `two_sided`, as long as
rounding leaves three digits (see `engines.proofs.uniformisation_error`); beyond that the part of
rounding is an estimate. What a question starts from, `values` and rewards, is taken as exact.
`change` and `residual` are 0: no equation is solved.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.errors import UnsupportedError
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import step_rewards
from engines.questions import uniformisation
from engines.systems.two_sided import UNIT_ROUNDOFF

ROUNDING = 8.0 * UNIT_ROUNDOFF
"""More than a few operations round, relative to their result."""


def time_bounded_until(
    model: ExplicitModel,
    remain: MaskArray,
    target: MaskArray,
    lower: float,
    upper: float,
    environment: SolverEnvironment,
    *,
    values: FloatArray | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute P(remain U[lower,upper] target) of every state.

    Parameters
    ----------
    model
        A CTMC.
    remain, target
        The two sides of the until, shape (states,).
    lower, upper
        Times, 0 ≤ lower ≤ upper; `upper` may be infinite where `values` are given.
    environment
        Accuracy and device; its method and limits do not matter.
    values
        For an infinite `upper`: the probabilities of ``remain U target``, shape (states,).
    progress
        Called now and then with the sweeps made, the share of the sum still to come and seconds.

    Returns
    -------
    The result; its values have shape (states,).

    Raises
    ------
    UnsupportedError
        For another kind of model.
    InvalidModelError
        For more than 10¹² jumps to expect.
    ValueError
        For times that are no interval.

    Notes
    -----
    Two phases, as in Baier, Haverkort, Hermanns and Katoen (2003): from `lower` to `upper` in the
    chain whose targets absorb, and before that within `remain` only.
    """
    _require_ctmc(model, "time-bounded until")
    if not (0.0 <= lower <= upper and math.isfinite(lower)):
        raise ValueError(f"[{lower}, {upper}] is no interval of times from 0 on")
    if math.isinf(upper):
        if values is None:
            raise ValueError("an until without an upper bound needs the unbounded probabilities")
        return time_bounded_after(model, remain, values, lower, environment, progress=progress)
    start = target.astype(np.float64)
    active = remain & ~target
    last = uniformisation.backward(
        model.matrix, active, start, upper - lower, environment, progress=progress
    )
    if lower == 0.0:
        return last
    first = time_bounded_after(model, remain, last.values, lower, environment, progress=progress)
    # Neither phase makes an error larger: both are averages.
    error = first.error_estimate + last.error_estimate
    result = SolveResult.combined(first.values, [last, first], error)
    # The first phase knows its zeros by the graph; one of the last may be too small a number.
    positive = bool(last.values.all())
    both = tuple(
        value for value in first.decided if value in last.decided or (value == 0.0 and positive)
    )
    result = replace(result, unrounded=first.unrounded and last.unrounded, decided=both)
    if first.bounds is None or not last.two_sided:
        return result
    low, up = first.bounds
    margin = np.where(remain, last.error_estimate + ROUNDING * float(up.max()), 0.0)
    bounds = np.maximum(low - margin, 0.0), np.minimum(up + margin, 1.0)
    return replace(result, bounds=bounds)


def time_bounded_after(
    model: ExplicitModel,
    remain: MaskArray,
    values: FloatArray,
    time: float,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute E[values(X_time); the chain has stayed in `remain`] of every state.

    Parameters
    ----------
    model
        A CTMC.
    remain
        Where to stay, shape (states,).
    values
        Finite and not negative, shape (states,).
    time
        At least 0.
    environment, progress
        As for `time_bounded_until`.

    Raises
    ------
    UnsupportedError
        For another kind of model.
    InvalidModelError
        For more than 10¹² jumps to expect.
    ValueError
        For a negative time, or values that are not finite.
    """
    _require_ctmc(model, "time-bounded operators")
    start = np.where(remain, values, 0.0)
    if not np.isfinite(start).all():
        raise ValueError("the values to start from must be finite")
    return uniformisation.backward(
        model.matrix, remain, start, time, environment, progress=progress
    )


def cumulative_rewards_until(
    model: ExplicitModel,
    rewards: RewardStructure,
    time: float,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the expected reward earned up to a time, R[C<=time], of every state.

    Parameters
    ----------
    model
        A CTMC.
    rewards
        Rewards of a unit of time; those of transitions are folded in by their rates.
    time
        At least 0.
    environment, progress
        As for `time_bounded_until`.

    Raises
    ------
    InvalidModelError
        For rewards that are negative or not finite, or more than 10¹² jumps to expect.
    UnsupportedError
        For another kind of model.
    ValueError
        For a negative time.
    """
    _require_ctmc(model, "cumulative rewards up to a time")
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    return uniformisation.backward(
        model.matrix,
        everywhere,
        step_rewards(model, rewards),
        time,
        environment,
        cumulative=True,
        progress=progress,
    )


def instantaneous_rewards_at(
    model: ExplicitModel,
    rewards: RewardStructure,
    time: float,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the expected state reward at a time, R[I=time], of every state.

    Parameters
    ----------
    model
        A CTMC.
    rewards
        Rewards of states.
    time
        At least 0.
    environment, progress
        As for `time_bounded_until`.

    Raises
    ------
    InvalidModelError
        For rewards that are negative or not finite, or more than 10¹² jumps to expect.
    UnsupportedError
        For another kind of model.
    ValueError
        For a negative time.
    """
    _require_ctmc(model, "rewards at a time")
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    start = step_rewards(model, rewards)
    return uniformisation.backward(
        model.matrix, everywhere, start, time, environment, progress=progress
    )


def distribution_at(
    model: ExplicitModel,
    initial: FloatArray,
    time: float,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the distribution over states at a time.

    Parameters
    ----------
    model
        A CTMC.
    initial
        The distribution at time 0, shape (states,).
    time
        At least 0.
    environment, progress
        As for `time_bounded_until`.

    Raises
    ------
    UnsupportedError
        For another kind of model.
    InvalidModelError
        For more than 10¹² jumps to expect.
    ValueError
        For a negative time.
    """
    _require_ctmc(model, "transient probabilities at a time")
    return uniformisation.forward(model.matrix, initial, time, environment, progress=progress)


def _require_ctmc(model: ExplicitModel, what: str) -> None:
    if model.kind is not ModelKind.CTMC:
        raise UnsupportedError(f"{what}: for CTMCs; the model is a {model.kind}, which has steps")
