"""Expected total rewards between two bounds: R [ C ]."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.graph.components import bsccs
from engines.graph.mec import end_component_states, maximal_end_components
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import step_rewards
from engines.questions.intervals import collapsed, reachability_reward_bounds
from engines.systems.one_sided import Direction
from engines.systems.two_sided import ROUNDING_SLACK, slack_of_quotient


def total_reward_bounds(
    model: ExplicitModel,
    rewards: RewardStructure,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Bound the expected reward earned for ever, of every state.

    Parameters
    ----------
    model
        A DTMC, a CTMC or an MDP.
    rewards
        Rewards of a step (DTMC, MDP) or of a unit of time (CTMC).
    environment, direction, progress
        As in `engines.questions.intervals.reachability_reward_bounds`.

    Returns
    -------
    The result, with `bounds`; infinite as in `engines.questions.total_rewards.total_rewards`.

    Raises
    ------
    ConvergenceError, InvalidModelError, ValueError
        As `reachability_reward_bounds`.
    UnsupportedError
        For a method that does not fit.

    Notes
    -----
    A total reward is that until a part is reached that is never left and earns nothing; where some
    run, or the worst strategy, may do without, it is infinite. In a chain these are the bottom
    components without rewards. For the minimum of an MDP they are the end components without
    rewards, whose strategies then stay; for the maximum those that no choice leaves, after each has
    been made one state.
    """
    earned = step_rewards(model, rewards)
    if model.kind is not ModelKind.MDP:
        target = _without_rewards(bsccs(model, environment).labels, earned > 0.0)
    elif direction is Direction.MINIMISE:
        target = end_component_states(model, None, earned == 0.0, environment).labels >= 0
    elif direction is None:
        raise ValueError("an MDP needs a direction: minimise or maximise")
    else:
        return _most(model, earned, environment, progress)
    return reachability_reward_bounds(
        model, rewards, target, environment, direction=direction, progress=progress
    )


def _without_rewards(labels: np.ndarray, paying: MaskArray) -> MaskArray:
    """Return the states of the components none of whose states pays."""
    pays = np.zeros(len(labels) + 1, dtype=np.bool_)
    pays[labels[paying & (labels >= 0)]] = True
    inside: MaskArray = (labels >= 0) & ~pays[labels]
    return inside


def _most(
    model: ExplicitModel,
    earned: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> SolveResult:
    """Bound the maximum, with end components that earn nothing made one state each.

    To stay there is worth no more than to leave, so that only those that no choice leaves end a
    run; where another end is possible, it is among rewards that go on for ever.
    """
    free = maximal_end_components(model, None, earned == 0.0, environment)
    quotient, earned, state_of = collapsed(model, earned, free)
    stays = quotient.matrix.columns == quotient.states_of_rows()[quotient.matrix.row_of_entry()]
    leaves = np.zeros(quotient.num_states, dtype=np.bool_)
    leaves[quotient.states_of_rows()[quotient.matrix.row_of_entry()[~stays]]] = True
    paying = np.zeros(quotient.num_states, dtype=np.bool_)
    paying[quotient.states_of_rows()[earned > 0.0]] = True
    result = reachability_reward_bounds(
        quotient,
        RewardStructure("", np.zeros(quotient.num_states), earned),
        ~leaves & ~paying,
        environment,
        direction=Direction.MAXIMISE,
        progress=progress,
        slack=slack_of_quotient(model.matrix) if free.count else ROUNDING_SLACK,
    )
    lower, upper = result.bounds or (result.values, result.values)
    moved = result.of_parts(state_of)
    return replace(moved, bounds=(lower[state_of], upper[state_of]))
