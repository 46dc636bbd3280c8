"""Expected rewards until a target is reached: R [ F target ]."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.graph.mec import EndComponents, maximal_end_components
from engines.graph.prob01 import prob0, prob1
from engines.graph.quotient import collapse
from engines.methods.strategy import ANY_CHOICE, avoiding_strategy, expanded_strategy, rows_towards
from engines.model.decided import decided_values
from engines.model.environment import SolverEnvironment
from engines.model.events import Kind
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import step_rewards
from engines.questions.reachability import solve_reachability
from engines.systems.one_sided import Direction


def reachability_rewards(
    model: ExplicitModel,
    rewards: RewardStructure,
    target: MaskArray,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    progress: Progress | None = None,
    want_strategy: bool = False,
) -> SolveResult:
    """Compute the expected reward earned until the target is reached, of every state.

    It is 0 at the target, and infinite where the target is not reached with probability 1: in an
    MDP by some strategy for the maximum, by every strategy for the minimum.

    Parameters
    ----------
    model
        A DTMC, a CTMC or an MDP.
    rewards
        Rewards of a step (DTMC, MDP) or of a unit of time (CTMC).
    target
        Target states, shape (states,).
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
    For the minimum, choices that may enter a state of infinite reward are left out, and end
    components without any reward are made one state each, whatever the method: staying in one
    costs nothing, so that value iteration from 0 would never leave it (de Alfaro 1999). End
    components that earn something make no second finite fixed point. For the maximum there are no
    end components left, since every strategy reaches the target.
    """
    earned = step_rewards(model, rewards)
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    if model.kind is not ModelKind.MDP:
        sure = prob1(model, everywhere, target, environment=environment)
        direction = None
    elif direction is None:
        raise ValueError("an MDP needs a direction: minimise or maximise")
    elif direction is Direction.MAXIMISE:
        sure = prob1(model, everywhere, target, Direction.MINIMISE, environment=environment)
    else:
        sure = prob1(model, everywhere, target, Direction.MAXIMISE, environment=environment)

    unknown = sure & ~target
    if direction is Direction.MINIMISE and unknown.any():
        return least_rewards(
            model, earned, unknown, ~sure, environment, progress, want_strategy=want_strategy
        )
    result = solve_rewards(
        model,
        earned,
        unknown,
        ~sure,
        environment,
        direction,
        progress,
        want_strategy=want_strategy,
    )
    if direction is Direction.MAXIMISE and result.strategy is not None:
        never = prob0(model, everywhere, target, Direction.MINIMISE, environment=environment)
        avoiding = avoiding_strategy(model, never, ~sure)
        result = replace(result, strategy=np.where(sure, result.strategy, avoiding))
    return result


def least_rewards(
    model: ExplicitModel,
    earned: FloatArray,
    unknown: MaskArray,
    infinite: MaskArray,
    environment: SolverEnvironment,
    progress: Progress | None,
    *,
    want_strategy: bool = False,
) -> SolveResult:
    """Solve for the least expected rewards of an MDP whose states have been sorted already.

    Parameters
    ----------
    model
        An MDP.
    earned
        The reward of each row, as `step_rewards` returns it.
    unknown, infinite
        States to solve for, from which some strategy reaches the target with probability 1, and
        states from which none does, each of shape (states,); the others are the target.
    environment, progress, want_strategy
        As in `reachability_rewards`.

    Returns
    -------
    The result; its events tell of end components without reward.
    """
    keep = ~may_enter(model, infinite) | ~model.rows_of(unknown)
    solved, kept = without_choices(model, keep), earned[keep]
    free = maximal_end_components(solved, unknown, kept == 0.0, environment)
    result = solve_rewards(
        solved,
        kept,
        unknown,
        infinite,
        environment,
        Direction.MINIMISE,
        progress,
        collapsing=free,
        want_strategy=want_strategy,
    )
    if free.count:
        result = replace(result, events=(Kind.LOOPS_LEFT(loops=free.count), *result.events))
    if result.strategy is not None:
        rows = np.flatnonzero(keep)[result.strategy]
        result = replace(result, strategy=np.where(result.strategy >= 0, rows, ANY_CHOICE))
    return result


def solve_rewards(
    model: ExplicitModel,
    earned: FloatArray,
    unknown: MaskArray,
    infinite: MaskArray,
    environment: SolverEnvironment,
    direction: Direction | None,
    progress: Progress | None,
    *,
    collapsing: EndComponents | None = None,
    want_strategy: bool = False,
) -> SolveResult:
    """Solve for expected rewards that are finite on the unknown states.

    Parameters
    ----------
    model
        No row of an unknown state enters an infinite one.
    earned
        The reward of each row, as `step_rewards` returns it.
    unknown, infinite
        States to solve for, and states of infinite reward, each of shape (states,); the others
        have reward 0.
    environment, direction, progress
        As in `reachability_rewards`.
    collapsing
        End components to make one state each.
    want_strategy
        MDPs: whether the result shall have an optimal strategy, of the unknown states.

    Returns
    -------
    The result; exact where the unknown states earn nothing.
    """
    start = np.zeros(model.num_states)
    given, given_unknown, quotient = model, unknown, None
    if not np.any(earned[model.rows_of(unknown)] > 0.0):
        result = SolveResult.exact(np.where(infinite, np.inf, start), environment.method)
        if not want_strategy or direction is None:
            return result
        return replace(result, strategy=_free_strategy(model, unknown, infinite, direction))
    state_of = None
    if collapsing is not None and collapsing.count > 0:
        quotient = collapse(model, collapsing)
        model, state_of = quotient.model, quotient.state_of
        added = quotient.choice_of < 0
        earned = np.where(added, 0.0, earned[quotient.choice_of])
        start = np.zeros(model.num_states)
        unknown_there = np.zeros(model.num_states, dtype=np.bool_)
        unknown_there[state_of] = unknown
        unknown = unknown_there
    result = solve_reachability(
        model,
        unknown,
        start,
        environment,
        rewards=earned,
        direction=direction,
        progress=progress,
        want_strategy=want_strategy,
    )
    if result.strategy is not None and quotient is not None and collapsing is not None:
        strategy = expanded_strategy(given, collapsing, quotient, result.strategy)
        result = replace(result, strategy=strategy)
    if state_of is not None:
        result = result.of_parts(state_of)
    if not infinite.any():
        return result
    # No row that was swept enters an infinite state, so the infinities can wait until here: with
    # finite numbers alone, every kernel will do.
    values = np.where(infinite, np.inf, result.values)
    decided = decided_values(values, ~given_unknown)
    return replace(result, values=values, decided=decided)


def _free_strategy(
    model: ExplicitModel, unknown: MaskArray, infinite: MaskArray, direction: Direction
) -> IndexArray:
    """Return an optimal strategy where nothing is earned, shape (states,)."""
    owner = model.states_of_rows()
    # The minimum still has to reach the target.
    allowed = unknown[owner] & (direction is Direction.MINIMISE)
    return rows_towards(model.matrix, owner, allowed, ~unknown & ~infinite)


def may_enter(model: ExplicitModel, states: MaskArray) -> MaskArray:
    """Return which rows enter one of the states with positive probability, shape (rows,)."""
    matrix = model.matrix
    entering = states[matrix.columns] & (matrix.values > 0.0)
    rows = np.zeros(matrix.num_rows, dtype=np.bool_)
    rows[matrix.row_of_entry()[entering]] = True
    return rows


def without_choices(model: ExplicitModel, keep: MaskArray) -> ExplicitModel:
    """Return the MDP with the choices kept, at least one of each state; without its rewards."""
    groups = model.row_group_offsets
    if groups is None or bool(np.all(keep)):
        return model
    kept_before = np.zeros(len(keep) + 1, dtype=groups.dtype)
    np.cumsum(keep, out=kept_before[1:])
    return replace(
        model,
        matrix=model.matrix.select_rows(np.flatnonzero(keep)),
        row_group_offsets=kept_before[groups],
        rewards=(),
    )
