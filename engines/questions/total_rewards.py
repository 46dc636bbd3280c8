"""Expected total rewards, without an end: R [ C ]."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.graph.components import bsccs
from engines.graph.mec import EndComponents, end_component_states, maximal_end_components
from engines.graph.prob01 import prob0
from engines.methods.strategy import earning_strategy, first_rows_of
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, RewardStructure
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import step_rewards
from engines.questions.reachability import refuse_bounds
from engines.questions.reachability_rewards import (
    reachability_rewards,
    solve_rewards,
)
from engines.systems.one_sided import Direction
from engines.systems.plain import direction_of


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
    model, environment, direction, progress, want_strategy
        As in `engines.questions.until.until_probabilities`.
    rewards
        Rewards of a step (DTMC, MDP) or of a unit of time (CTMC).

    Returns
    -------
    The result; its values have shape (states,).

    Raises
    ------
    ConvergenceError, InvalidModelError, UnsupportedError, ValueError
        As `engines.questions.reachability_rewards.reachability_rewards`.

    Notes
    -----
    A total reward is that until a part is reached that is never left and earns nothing. For the
    maximum, end components that earn nothing are made one state each, so that the sweeps contract;
    those that no choice leaves then end a run. A named value iteration without bounds sweeps the
    model as it is, as PRISM does. The minimum, which PRISM refuses, is that of reaching an end
    component without rewards: whoever never settles in one earns without end.
    """
    refuse_bounds(model, environment, want_strategy)
    direction = direction_of(model, direction)
    earned = step_rewards(model, rewards)
    if direction is None:
        return _of_a_chain(model, earned, environment, progress)
    if direction is Direction.MINIMISE:
        return _least(model, rewards, earned == 0.0, environment, progress, want_strategy)
    components = maximal_end_components(model, environment=environment)
    paying = components.choices & (earned > 0.0)
    members = model.states_of_rows()[paying]
    infinite = _reaching(model, components.labels, members, direction, environment)
    contracts = environment.automatic or environment.two_sided
    result = solve_rewards(
        model,
        earned,
        ~infinite,
        infinite,
        environment,
        direction,
        progress,
        collapsing=components if contracts else None,
        want_strategy=want_strategy,
    )
    if result.strategy is None:
        return result
    earning = earning_strategy(model, components, paying)
    return replace(result, strategy=np.where(infinite, earning, result.strategy))


def _least(
    model: ExplicitModel,
    rewards: RewardStructure,
    free: MaskArray,
    environment: SolverEnvironment,
    progress: Progress | None,
    want_strategy: bool,
) -> SolveResult:
    """Return the minimum, which settles in end components of the choices that are free."""
    # Their choices take longer to find than their states, and only a strategy needs them.
    find = maximal_end_components if want_strategy else end_component_states
    components = find(model, None, free, environment)
    ends = components.labels >= 0
    result = reachability_rewards(
        model,
        rewards,
        ends,
        environment,
        direction=Direction.MINIMISE,
        progress=progress,
        want_strategy=want_strategy,
    )
    if result.strategy is None or not isinstance(components, EndComponents):
        return result
    staying = first_rows_of(model.states_of_rows(), components.choices, model.num_states)
    return replace(result, strategy=np.where(ends, staying, result.strategy))


def _of_a_chain(
    model: ExplicitModel,
    earned: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> SolveResult:
    components = bsccs(model, environment)
    recurrent = components.labels >= 0
    members = np.flatnonzero(recurrent & (earned > 0.0))
    infinite = _reaching(model, components.labels, members, None, environment)
    one_method = environment.convention is Convention.EXPLICIT and not environment.two_sided
    if one_method and not environment.automatic:
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
