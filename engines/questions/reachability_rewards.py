"""Expected rewards until a target is reached: R [ F target ]."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.devices.graph import operations_of
from engines.graph.mec import EndComponents, maximal_end_components
from engines.graph.prob01 import prob0, prob1
from engines.graph.quotient import collapse
from engines.methods import direct
from engines.methods.strategy import ANY_CHOICE, avoiding_strategy, expanded_strategy, rows_towards
from engines.model.decided import decided_values
from engines.model.environment import Method, SolverEnvironment
from engines.model.events import Kind
from engines.model.explicit import ExplicitModel, RewardStructure
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import step_rewards
from engines.proofs.upper_bounds import upper_bound
from engines.questions.reachability import refuse_bounds, solve_reachability
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.plain import direction_of, plain_system
from engines.systems.two_sided import ROUNDING_SLACK, slack_of_quotient

OPPONENT = {Direction.MINIMISE: Direction.MAXIMISE, Direction.MAXIMISE: Direction.MINIMISE}


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
    model, environment, direction, progress, want_strategy
        As in `engines.questions.until.until_probabilities`.
    rewards
        Rewards of a step (DTMC, MDP) or of a unit of time (CTMC).
    target
        Target states, shape (states,).

    Returns
    -------
    The result; its values have shape (states,).

    Raises
    ------
    ConvergenceError
        As `until_probabilities`; a wrong bound given by hand makes bounds cross. For no finite
        upper bound.
    InvalidModelError
        For rewards that are negative or not finite, and for rewards that do not fit the model.
    ValueError, UnsupportedError
        As `until_probabilities`; for a way to an upper bound that does not fit the model.

    Notes
    -----
    For the minimum, choices that may enter a state of infinite reward are left out, and end
    components without any reward are made one state each, whatever the method: staying in one
    costs nothing, so that value iteration from 0 would never leave it (de Alfaro 1999). End
    components that earn something make no second finite fixed point, even where a strategy may stay
    for ever and pay for it, which PRISM's interval iteration refuses. For the maximum there are no
    end components left, since every strategy reaches the target.

    Bounds: Baier, Klein, Leuschner, Parker and Wunderlich (2017), Ensuring the Reliability of Your
    Model Checker: Interval Iteration for Markov Decision Processes.
    """
    refuse_bounds(model, environment, want_strategy)
    direction = direction_of(model, direction)
    earned = step_rewards(model, rewards)
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    worst = None if direction is None else OPPONENT[direction]
    sure = prob1(model, everywhere, target, worst, environment=environment)
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
    if free.count and not environment.two_sided:
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
    if not np.any(earned[model.rows_of(unknown)] > 0.0):
        values = np.where(infinite, np.inf, 0.0)
        result = SolveResult.exact(values, environment.method, two_sided=environment.two_sided)
        if not want_strategy or direction is None:
            return result
        return replace(result, strategy=_free_strategy(model, unknown, infinite, direction))
    solve = functools.partial(
        _solve_finite,
        environment=environment,
        direction=direction,
        progress=progress,
        want_strategy=want_strategy,
    )
    if collapsing is None or collapsing.count == 0:
        result, solved = solve(model, earned, unknown), unknown
    else:
        quotient = collapse(model, collapsing)
        added = quotient.choice_of < 0
        paid = np.where(added, 0.0, earned[quotient.choice_of])
        left = quotient.moved(unknown)
        # Who stays in a component for want of a way out earns nothing.
        left[quotient.model.states_of_rows()[added]] = False
        result = solve(quotient.model, paid, left, slack=slack_of_quotient(model.matrix))
        strategy = result.strategy
        if strategy is not None:
            strategy = expanded_strategy(model, collapsing, quotient, strategy)
        result = replace(result.of_parts(quotient.state_of), strategy=strategy)
        solved = left[quotient.state_of]
    if not infinite.any():
        return result
    # No row that was swept enters an infinite state, so the infinities can wait until here: with
    # finite numbers alone, every kernel will do.
    result = result.mapped(lambda values: np.where(infinite, np.inf, values))
    if environment.two_sided:
        return result
    return replace(result, decided=decided_values(result.values, ~solved))


def _solve_finite(
    model: ExplicitModel,
    earned: FloatArray,
    unknown: MaskArray,
    environment: SolverEnvironment,
    direction: Direction | None,
    progress: Progress | None,
    want_strategy: bool,
    slack: int = ROUNDING_SLACK,
) -> SolveResult:
    """Solve for the rewards of the unknown states; those of all others are taken to be 0."""
    start, upper = np.zeros(model.num_states), None
    if environment.two_sided:
        solved = unknown & ~_earning_nothing(model, earned, unknown, direction, environment)
        if not solved.any():
            return SolveResult.exact(start, environment.method, two_sided=True)
        upper = _start_from_above(model, unknown, solved, earned, direction, environment, slack)
        unknown = solved
    return solve_reachability(
        model,
        unknown,
        start,
        environment,
        rewards=earned,
        direction=direction,
        progress=progress,
        want_strategy=want_strategy,
        upper=upper,
        slack=slack,
    )


def _earning_nothing(
    model: ExplicitModel,
    earned: FloatArray,
    unknown: MaskArray,
    direction: Direction | None,
    environment: SolverEnvironment,
) -> MaskArray:
    """Return the unknown states of reward 0, whose upper values would go on falling for ever."""
    paying = (earned > 0.0) & model.rows_of(unknown)
    owner = model.states_of_rows()
    if direction is not Direction.MINIMISE:
        payers = np.zeros(model.num_states, dtype=np.bool_)
        payers[owner[paying]] = True
        return unknown & ~operations_of(model, environment).may_reach(payers, unknown)
    # A choice that costs leads nowhere: what still reaches the target does so for nothing.
    matrix = model.matrix
    row = matrix.row_of_entry()
    columns = np.where(paying[row], owner[row], matrix.columns).astype(matrix.columns.dtype)
    without = replace(model, matrix=replace(matrix, columns=columns), rewards=())
    free = prob1(without, unknown, ~unknown, Direction.MAXIMISE, environment=environment)
    return unknown & free


def _start_from_above(
    model: ExplicitModel,
    unknown: MaskArray,
    solved: MaskArray,
    earned: FloatArray,
    direction: Direction | None,
    environment: SolverEnvironment,
    slack: int,
) -> FloatArray:
    options = environment.interval
    if options.upper is not None:
        return np.where(solved, options.upper, 0.0)
    if environment.method is Method.OPTIMISTIC:
        return np.where(solved, np.inf, 0.0)
    system = plain_system(model, unknown, np.zeros(model.num_states), earned, direction)
    bound = upper_bound(model, unknown, system, options.bound_method, slack, _solved_chain)
    # A named method starts from one number, as PRISM does, so that it makes as many sweeps.
    return np.where(solved, bound.values if environment.unnamed else bound.largest, 0.0)


def _solved_chain(chain: SweepSystem) -> FloatArray:
    if not direct.fits(chain.matrix):
        raise RuntimeError("the factors would fill up")
    return direct.solve_chain(chain)[0]


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
