"""Expected total rewards, without an end: R [ C ]."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.graph.components import bsccs
from engines.graph.mec import maximal_end_components
from engines.graph.prob01 import prob0
from engines.methods.strategy import earning_strategy, first_rows_of
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import step_rewards
from engines.questions.reachability_rewards import (
    reachability_rewards,
    solve_rewards,
)
from engines.systems.one_sided import Direction


def total_rewards(
    model: ExplicitModel,
    rewards: RewardStructure,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    progress: Progress | None = None,
    want_strategy: bool = False,
) -> SolveResult:
    """Compute the expected reward earned for ever, of every state.

    It is infinite where a part of the model that is never left, and that earns something, is
    entered with positive probability: in a chain a bottom component, for the maximum of an MDP an
    end component. The minimum of an MDP is finite where some strategy ends, with probability 1, in
    an end component that earns nothing.

    Parameters
    ----------
    model
        A DTMC, a CTMC or an MDP.
    rewards
        Rewards of a step (DTMC, MDP) or of a unit of time (CTMC).
    environment
        Method, termination, limits, device.
    direction
        MDPs: minimum or maximum.
    progress
        Called after each batch of sweeps.
    want_strategy
        MDPs: whether the result shall have an optimal strategy.

    Returns
    -------
    The result; its values have shape (states,).

    Raises
    ------
    InvalidModelError
        For rewards that are negative or not finite, and for rewards that do not fit the model.
    ValueError
        For an MDP without a direction.
    UnsupportedError
        For a method that does not fit the model.

    Notes
    -----
    For the maximum, end components that earn nothing are made one state each, so that the sweeps
    contract; a named value iteration sweeps the model as it is, as PRISM does. The minimum, which
    PRISM refuses, is that of reaching an end component without rewards: whoever never settles in
    one earns without end.
    """
    earned = step_rewards(model, rewards)
    if model.kind is not ModelKind.MDP:
        return _of_a_chain(model, earned, environment, progress)
    if direction is None:
        raise ValueError("an MDP needs a direction: minimise or maximise")
    if direction is Direction.MINIMISE:
        free = maximal_end_components(model, None, earned == 0.0, environment)
        result = reachability_rewards(
            model,
            rewards,
            free.labels >= 0,
            environment,
            direction=direction,
            progress=progress,
            want_strategy=want_strategy,
        )
        if result.strategy is None:
            return result
        staying = first_rows_of(model.states_of_rows(), free.choices, model.num_states)
        return replace(result, strategy=np.where(free.labels >= 0, staying, result.strategy))
    components = maximal_end_components(model, environment=environment)
    paying = components.choices & (earned > 0.0)
    members = model.states_of_rows()[paying]
    infinite = _reaching(model, components.labels, members, direction, environment)
    result = solve_rewards(
        model,
        earned,
        ~infinite,
        infinite,
        environment,
        direction,
        progress,
        collapsing=components if environment.automatic else None,
        want_strategy=want_strategy,
    )
    if result.strategy is None:
        return result
    earning = earning_strategy(model, components, paying)
    return replace(result, strategy=np.where(infinite, earning, result.strategy))


def _of_a_chain(
    model: ExplicitModel,
    earned: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> SolveResult:
    components = bsccs(model)
    recurrent = components.labels >= 0
    members = np.flatnonzero(recurrent & (earned > 0.0))
    infinite = _reaching(model, components.labels, members, None, environment)
    if environment.convention is Convention.EXPLICIT and not environment.automatic:
        # PRISM's explicit engine knows one method here.
        environment = replace(environment, method=Method.POWER)
    unknown = ~infinite & ~recurrent
    return solve_rewards(model, earned, unknown, infinite, environment, None, progress)


def _reaching(
    model: ExplicitModel,
    labels: np.ndarray,
    members: np.ndarray,
    direction: Direction | None,
    environment: SolverEnvironment,
) -> MaskArray:
    """Return which states may reach the components that the members belong to, shape (states,)."""
    chosen = np.zeros(model.num_states + 1, dtype=np.bool_)
    chosen[labels[members]] = True
    # A component has at most as many members as there are states; -1 finds the last, unset place.
    entered = chosen[labels]
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    return ~prob0(model, everywhere, entered, direction, environment=environment)
