"""Interval iteration: until probabilities and reachability rewards between two bounds."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.devices.graph import operations_of
from engines.devices.two_sided import two_sided_sweeper
from engines.errors import UnsupportedError
from engines.graph.mec import EndComponents, maximal_end_components
from engines.graph.prob01 import prob0, prob1
from engines.graph.quotient import collapse
from engines.model.environment import Method, SolverEnvironment
from engines.model.events import Events, Kind
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Progress
from engines.model.result import ExactValues, SolveResult
from engines.model.step_rewards import step_rewards
from engines.proofs import exact
from engines.proofs.upper_bounds import upper_bound
from engines.questions.reachability_rewards import (
    may_enter,
    without_choices,
)
from engines.solve.certified import certify, may_certify
from engines.solve.narrow import Batches, Narrowing, largest_error, measured_width, narrow
from engines.solve.optimistic import narrow_by_guesses
from engines.solve.topological_intervals import narrow_topologically
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.two_sided import (
    ROUNDING_SLACK,
    TwoSidedSweeper,
    TwoSidedSystem,
    plain_system,
    slack_of_quotient,
    without_self_loops,
)

CHAIN_METHODS = (Method.AUTO, Method.INTERVAL, Method.OPTIMISTIC, Method.POWER, Method.JACOBI)


def until_bounds(
    model: ExplicitModel,
    remain: MaskArray,
    target: MaskArray,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute P(remain U target) of every state, between bounds that hold whatever the rounding.

    Parameters
    ----------
    model
        A DTMC, a CTMC or an MDP.
    remain, target
        States that a path may pass, and states that it must reach, each of shape (states,).
    environment
        The width of the intervals, relative or absolute, as epsilon; limits, device, sub-switches.
        `Method.OPTIMISTIC` asks for optimistic value iteration, another method for interval
        iteration, of a chain with its sweeps (power or Jacobi).
    direction
        MDPs: minimum or maximum probability.
    progress
        Called after each batch of sweeps, with the width.

    Returns
    -------
    The result, with `bounds`; its error estimate is a bound, half the greatest width.

    Raises
    ------
    ConvergenceError
        For bounds that cross, or sweeps that are not monotonic where that is checked.
    UnsupportedError
        For a method that does not fit the model.
    ValueError
        For an MDP without a direction.

    Notes
    -----
    Haddad and Monmege (2018), Interval iteration algorithm for MDPs and IMDPs; Brázdil et al.
    (2014), Verification of Markov decision processes using learning algorithms. For the maximum,
    end components of the unknown states are made one state each: without that the upper values
    would never leave 1 there.
    """
    _check_method(model, environment)
    direction = _required_direction(model, direction)
    no = prob0(model, remain, target, direction, environment=environment)
    yes = prob1(model, remain, target, direction, never=no, environment=environment)
    unknown = ~(yes | no)
    start = yes.astype(np.float64)
    if not unknown.any():
        return _exact(start, environment)
    state_of, slack = None, ROUNDING_SLACK
    if direction is Direction.MAXIMISE:
        components = maximal_end_components(model, unknown, environment=environment)
        if components.count:
            quotient, slack = collapse(model, components), slack_of_quotient(model.matrix)
            model, state_of = quotient.model, quotient.state_of
            unknown, start = _moved(unknown, state_of), _moved(start, state_of)
    system = plain_system(model, unknown, start, None, direction)
    upper = np.where(unknown, 1.0, start)
    exactly = exact.reachability(model, unknown, start, None, direction)
    result = _solve(system, upper, unknown, environment, slack, exactly, progress)
    return _mapped(result, state_of, greatest=1.0)


def reachability_reward_bounds(
    model: ExplicitModel,
    rewards: RewardStructure,
    target: MaskArray,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    progress: Progress | None = None,
    slack: int = ROUNDING_SLACK,
) -> SolveResult:
    """Compute the expected reward until the target, between bounds that hold despite rounding.

    Parameters
    ----------
    model
        A DTMC, a CTMC or an MDP.
    rewards
        Rewards of a step (DTMC, MDP) or of a unit of time (CTMC).
    target
        Target states, shape (states,).
    environment, direction, progress
        As in `until_bounds`.
    slack
        Roundings that an entry of the matrix may have suffered, where the caller made it.

    Returns
    -------
    The result, with `bounds`; infinite where the target is not reached for sure, 0 where nothing
    is earned on the way.

    Raises
    ------
    ConvergenceError
        For bounds that cross (a wrong bound given by hand does that), for no finite upper bound.
    InvalidModelError
        For rewards that are negative or not finite, and for rewards that do not fit the model.
    UnsupportedError
        For a method, or a bound method, that does not fit the model.
    ValueError
        For an MDP without a direction.

    Notes
    -----
    Baier, Klein, Leuschner, Parker and Wunderlich (2017), Ensuring the Reliability of Your Model
    Checker: Interval Iteration for Markov Decision Processes. For the minimum, choices that may
    miss the target are left out and end components without a reward made one state each. What is
    left has one finite fixed point even where a strategy may stay for ever and pay for it, which
    PRISM refuses.
    """
    _check_method(model, environment)
    direction = _required_direction(model, direction)
    earned = step_rewards(model, rewards)
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    opponent = {Direction.MINIMISE: Direction.MAXIMISE, Direction.MAXIMISE: Direction.MINIMISE}
    towards = opponent[direction] if direction else None
    sure = prob1(model, everywhere, target, towards, environment=environment)
    unknown = sure & ~target
    state_of = None
    if direction is Direction.MINIMISE and unknown.any():
        keep = ~may_enter(model, ~sure) | ~model.rows_of(unknown)
        model, earned = without_choices(model, keep), earned[keep]
        free = maximal_end_components(model, unknown, earned == 0.0, environment)
        if free.count:
            slack = max(slack, slack_of_quotient(model.matrix))
            model, earned, state_of = collapsed(model, earned, free)
            unknown = _moved(unknown, state_of)
    start = np.zeros(model.num_states)
    solved = unknown & ~_earning_nothing(model, earned, unknown, direction)
    infinite = ~sure
    if not solved.any():
        return _exact(np.where(infinite, np.inf, 0.0), environment)
    upper = _start_from_above(model, unknown, solved, earned, direction, environment, slack)
    start[solved] = environment.interval.lower or 0.0
    system = plain_system(model, solved, start, earned, direction)
    exactly = exact.reachability(model, solved, np.where(solved, 0.0, start), earned, direction)
    result = _solve(system, upper, solved, environment, slack, exactly, progress)
    return _mapped(result, state_of, infinite=infinite)


def _check_method(model: ExplicitModel, environment: SolverEnvironment) -> None:
    if model.kind is not ModelKind.MDP and environment.method not in CHAIN_METHODS:
        raise UnsupportedError(
            f"two-sided methods sweep a {model.kind} by the power method or Jacobi, not by "
            f"{environment.method}"
        )


def _required_direction(model: ExplicitModel, direction: Direction | None) -> Direction | None:
    if model.kind is not ModelKind.MDP:
        return None
    if direction is None:
        raise ValueError("an MDP needs a direction: minimise or maximise")
    return direction


def _moved(values: np.ndarray, state_of: IndexArray) -> np.ndarray:
    """Return values of the quotient's states; old states of one new state agree on them."""
    moved = np.zeros(int(state_of.max()) + 1, dtype=values.dtype)
    moved[state_of] = values
    return moved


def collapsed(
    model: ExplicitModel, earned: FloatArray, free: EndComponents
) -> tuple[ExplicitModel, FloatArray, IndexArray]:
    """Return an MDP with end components that earn nothing made one state each.

    Parameters
    ----------
    model, earned
        The MDP and the reward of each choice, shape (choices,).
    free
        The end components.

    Returns
    -------
    The quotient, the rewards of its choices, and the state that each old one became part of.
    """
    quotient = collapse(model, free)
    added = quotient.choice_of < 0
    return quotient.model, np.where(added, 0.0, earned[quotient.choice_of]), quotient.state_of


def _earning_nothing(
    model: ExplicitModel, earned: FloatArray, unknown: MaskArray, direction: Direction | None
) -> MaskArray:
    """Return the unknown states of reward 0, whose upper values would go on falling for ever."""
    paying = (earned > 0.0) & model.rows_of(unknown)
    owner = model.states_of_rows()
    if direction is not Direction.MINIMISE:
        payers = np.zeros(model.num_states, dtype=np.bool_)
        payers[owner[paying]] = True
        return unknown & ~operations_of(model).may_reach(payers, unknown)
    # A choice that costs leads nowhere: what still reaches the target does so for nothing.
    matrix = model.matrix
    row = matrix.row_of_entry()
    columns = np.where(paying[row], owner[row], matrix.columns).astype(matrix.columns.dtype)
    without = replace(model, matrix=replace(matrix, columns=columns), rewards=())
    return unknown & prob1(without, unknown, ~unknown, Direction.MAXIMISE)


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
    bound = upper_bound(model, unknown, system, options.bound_method, slack)
    # A named method starts from one number, as PRISM does, so that it makes as many sweeps.
    named = not _is_open(environment)
    return np.where(solved, bound.largest if named else bound.values, 0.0)


def _is_open(environment: SolverEnvironment) -> bool:
    """Return whether the user left it to us how to sweep."""
    return environment.method in (Method.AUTO, Method.INTERVAL, Method.OPTIMISTIC)


def _solve(
    plain: SweepSystem,
    upper: FloatArray,
    unknown: MaskArray,
    environment: SolverEnvironment,
    slack: int,
    exactly: ExactValues,
    progress: Progress | None,
) -> SolveResult:
    started = time.perf_counter()
    options, absolute = environment.interval, environment.absolute
    chain = plain.group_offsets is None
    jacobi = chain and environment.method is not Method.POWER
    optimistic = environment.method is Method.OPTIMISTIC
    events: Events = ()
    system = TwoSidedSystem(
        without_self_loops(plain) if jacobi else plain,
        # What is not verified yet must not be infinite: 0 times that is no number.
        np.where(np.isfinite(upper), upper, 0.0),
        options.monotonic_below,
        options.monotonic_above or optimistic,
        slack,
    )
    if environment.topological and not optimistic:
        done = narrow_topologically(
            system, environment, ours_to_choose=_is_open(environment), progress=progress
        )
        outcome, cost = done.narrowing, done.cost
        setup, sweeping = done.setup_seconds, done.sweeping_seconds
    else:
        stop_below = -1.0 if optimistic else environment.epsilon
        sweeper, events = two_sided_sweeper(system, environment, stop_below)
        setup = time.perf_counter() - started
        outcome = _narrowed(sweeper, plain, upper, environment, slack, exactly, progress)
        cost, sweeping = sweeper.cost, sweeper.seconds
        if environment.topological:
            events = (*events, Kind.TOGETHER(what="guesses"))
    lower, upper = outcome.lower, outcome.upper
    width = measured_width(lower[unknown], upper[unknown], absolute)
    midpoint = options.select_midpoint and bool(np.isfinite(upper[unknown]).all())
    sweeps = Method.JACOBI if jacobi else Method.POWER if chain else Method.VALUE_ITERATION
    values = lower + (upper - lower) / 2.0 if midpoint else lower
    return SolveResult(
        values=values,
        status=outcome.status,
        method=f"{Method.OPTIMISTIC if optimistic else Method.INTERVAL} ({sweeps})",
        iterations=outcome.iterations,
        change=width,
        # A sweep keeps an iterate between the bounds there.
        residual=measured_width(lower[unknown], upper[unknown], True),
        error_estimate=largest_error(values[unknown], lower[unknown], upper[unknown], absolute),
        seconds=time.perf_counter() - started,
        setup_seconds=setup,
        sweeping_seconds=sweeping,
        cost=cost,
        events=events + outcome.events,
        two_sided=True,
        bounds=(lower, upper),
        finished_by=outcome.finished_by,
        exactly=exactly,
    )


def _narrowed(
    sweeper: TwoSidedSweeper,
    plain: SweepSystem,
    upper: FloatArray,
    environment: SolverEnvironment,
    slack: int,
    exactly: ExactValues,
    progress: Progress | None,
) -> Narrowing:
    """Narrow the bounds; where sweeps are too slow, look for bounds around a direct solution."""
    direct_fits = _is_open(environment) and may_certify(plain)
    batches = Batches(sweeper, environment, progress)

    def swept(may_give_up: bool) -> Narrowing:
        if environment.method is Method.OPTIMISTIC:
            return narrow_by_guesses(sweeper, upper, environment, may_give_up, progress, batches)
        return narrow(sweeper, environment, may_give_up, progress, batches)

    outcome = swept(direct_fits)
    if not outcome.given_up:
        return outcome
    return certify(plain, environment, outcome, slack, exactly=exactly) or swept(False)


def _exact(values: FloatArray, environment: SolverEnvironment) -> SolveResult:
    result = SolveResult.exact(values, environment.method)
    return replace(result, two_sided=True, bounds=(values, values.copy()))


def _mapped(
    result: SolveResult,
    state_of: IndexArray | None,
    *,
    greatest: float = np.inf,
    infinite: MaskArray | None = None,
) -> SolveResult:
    """Return the result for the states of the model itself, none of them beyond the greatest."""

    def of_model(values: FloatArray) -> FloatArray:
        values = np.minimum(values if state_of is None else values[state_of], greatest)
        return values if infinite is None else np.where(infinite, np.inf, values)

    lower, upper = result.bounds or (result.values, result.values)
    moved = result if state_of is None else result.of_parts(state_of)
    values = of_model(result.values)
    return replace(moved, values=values, bounds=(of_model(lower), of_model(upper)))
