"""Until probabilities and reachability rewards: x = b + A x on the states not known beforehand."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, index_dtype
from engines.devices.graph import operations_of
from engines.errors import UnsupportedError
from engines.host.watched import relaxation, sweeps_in_colours
from engines.methods import direct, elimination
from engines.methods.afterwards import checked, solution_of
from engines.methods.policy_iteration import DirectPolicyIteration, ImproperPolicyError
from engines.methods.strategy import ANY_CHOICE, optimal_rows
from engines.model.decided import decided_values
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.events import Kind
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.proofs import exact
from engines.proofs.unrounded import solves_exactly
from engines.solve.modified_policy_iteration import policy_iteration
from engines.solve.stages import PartLimits
from engines.solve.system import solve_system
from engines.solve.topological import solve_topologically
from engines.solve.two_sided import solve_two_sided
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from engines.systems.plain import direction_of, plain_system
from engines.systems.two_sided import ROUNDING_SLACK

BY_POLICIES = "policy iteration with elimination"

Directly = Callable[[float], tuple[FloatArray, float]]

MDP_METHODS = (Method.VALUE_ITERATION, Method.POLICY_ITERATION, Method.MODIFIED_POLICY_ITERATION)
TWO_SIDED_METHODS_OF_CHAINS = (Method.POWER, Method.JACOBI)


def solve_reachability(
    model: ExplicitModel,
    unknown: MaskArray,
    start: FloatArray,
    environment: SolverEnvironment,
    *,
    rewards: FloatArray | None = None,
    direction: Direction | None = None,
    progress: Progress | None = None,
    want_strategy: bool = False,
    directly: Directly | None = None,
    upper: FloatArray | None = None,
    slack: int = ROUNDING_SLACK,
) -> SolveResult:
    """Compute until probabilities or expected reachability rewards.

    The caller has done the precomputation: `unknown` are the states left over, and `start` holds
    the values of all the others (1 and 0 for until; 0 at the target and infinity for rewards),
    which count as values without error.

    Parameters
    ----------
    model
        A DTMC, a CTMC (its embedded chain is solved), or an MDP. For bounds, its unknown states
        have no end component of a maximum, nor one without reward of a minimum.
    unknown
        States to solve for, shape (states,).
    start
        Known values, and the first iterate of the unknown states, shape (states,).
    environment, direction, progress, want_strategy
        As in `engines.questions.until.until_probabilities`.
    rewards
        None for probabilities. Else shape (states,), for MDPs (choices,): the reward of a step;
        for CTMCs of a unit of time.
    directly
        Chains: what finds the solution without iterations where the rows are not those of a chain,
        with a bound of its relative error, in so many multiplications at most.
    upper
        For bounds: upper bounds of the unknown states, shape (states,), infinite where none is
        known; None for 1.
    slack
        For bounds: roundings that an entry of the matrix may have suffered.

    Raises
    ------
    ConvergenceError
        As `engines.solve.two_sided.solve_two_sided`.
    UnsupportedError
        For a method that does not fit the model; for bounds with a strategy.
    """
    if not np.any(unknown):
        raise ValueError("no state is unknown: nothing to solve")
    refuse_bounds(model, environment, want_strategy)
    direction = direction_of(model, direction)
    given = (rewards, direction)
    exactly = exact.reachability(model, unknown, start, *given)
    system = plain_system(model, unknown, start, *given, accurately=environment.two_sided)
    greatest = np.inf if rewards is not None else max(1.0, float(np.max(start)))
    if environment.two_sided:
        if rewards is not None:
            first = np.where(unknown, environment.interval.lower or 0.0, start)
            system = replace(system, start=first)
        result = solve_two_sided(
            system,
            np.where(unknown, 1.0, start) if upper is None else upper,
            environment,
            slack=slack,
            exactly=exactly,
            solve=directly and functools.partial(directly, elimination.MOST_OPERATIONS),
            progress=progress,
        )
        return result.at_most(greatest)
    if model.kind is ModelKind.MDP:
        solved = _solve_mdp(model, unknown, system, environment, progress, want_strategy)
    else:
        solved = _solve_chain(model, system, environment, progress, directly)

    solve = functools.partial(solve_reachability, model, unknown, start)

    def again(ours: SolverEnvironment) -> tuple[FloatArray, float]:
        return solution_of(solve(ours, rewards=rewards, direction=direction, directly=directly))

    result = checked(solved, environment, system.matrix, again).at_most(greatest)
    return replace(
        result,
        unrounded=solves_exactly(model, unknown, result.values, *given, environment),
        decided=decided_values(result.values, ~unknown),
        exactly=exactly,
    )


def refuse_bounds(
    model: ExplicitModel, environment: SolverEnvironment, want_strategy: bool = False
) -> None:
    """Raise if bounds are asked for and cannot be had.

    Parameters
    ----------
    model, environment, want_strategy
        As in `solve_reachability`.

    Raises
    ------
    UnsupportedError
        For a method that has none, and for a strategy.
    """
    if not environment.two_sided:
        return
    fits = environment.unnamed or environment.method in TWO_SIDED_METHODS_OF_CHAINS
    if model.kind is not ModelKind.MDP and not fits:
        raise UnsupportedError(
            f"two-sided methods sweep a {model.kind} by the power method or Jacobi, not by "
            f"{environment.method}"
        )
    if want_strategy:
        raise UnsupportedError("bounds with a strategy")


def _solve_chain(
    model: ExplicitModel,
    plain: SweepSystem,
    environment: SolverEnvironment,
    progress: Progress | None,
    directly: Directly | None,
) -> SolveResult:
    if environment.method in MDP_METHODS:
        name = environment.method[0].lower() + environment.method[1:]
        raise UnsupportedError(f"{name} is for MDPs; the model is a {model.kind}")
    sparse = environment.convention is Convention.SPARSE and not environment.topological
    if plain.offset is not None and sparse:
        # PRISM's sparse engine starts expected rewards from b itself; it knows no components.
        start = np.array(plain.start, dtype=np.float64)
        start[slice(None) if plain.states is None else plain.states] = plain.offset
        plain = replace(plain, start=start)
    method = Method.JACOBI if environment.automatic else environment.method
    system = replace(
        plain,
        scaling=Scaling.NONE if method is Method.POWER else Scaling.DIAGONAL,
        omega=relaxation(method, environment.omega),
    )

    parts = functools.partial(
        solve_topologically, system, environment, method, direct=_by_elimination, progress=progress
    )
    eliminated = directly or functools.partial(direct.solve_chain, plain)

    def solve_directly(_: FloatArray) -> tuple[FloatArray, float]:
        return eliminated(elimination.MOST_OPERATIONS)

    if environment.topological:
        if sweeps_in_colours(method) or method is Method.GMRES:
            raise UnsupportedError(f"{method} of one component after the other")
        result = parts()
    else:
        if direct.at_once(environment, plain):
            started = time.perf_counter()
            # Where factors fill up, iterations take less time.
            with contextlib.suppress(RuntimeError):
                solved = eliminated(elimination.AT_ONCE_OPERATIONS)
                return direct.direct_result(plain, environment, solved, method, started)
        result = solve_system(
            system,
            environment,
            method,
            direct=solve_directly if direct.fits(plain.matrix) else None,
            direct_name=elimination.NAME,
            by_components=lambda limits: parts(limits=limits),
            progress=progress,
        )
    return result


def _by_elimination(chain: SweepSystem, _: FloatArray) -> tuple[FloatArray, float]:
    if not direct.fits(chain.matrix):
        raise RuntimeError(f"{chain.matrix.num_rows} states are too many for elimination")
    return direct.solve_chain(chain)


def _solve_mdp(
    model: ExplicitModel,
    unknown: MaskArray,
    system: SweepSystem,
    environment: SolverEnvironment,
    progress: Progress | None,
    want_strategy: bool,
) -> SolveResult:
    if system.offset is not None and environment.method is Method.MODIFIED_POLICY_ITERATION:
        # PRISM's is for probabilities alone: it goes over to Gauss-Seidel, and so to our choice.
        environment = replace(environment, method=Method.AUTO)
    solver = DirectPolicyIteration(system)
    rows: IndexArray | None
    if environment.method in (Method.POLICY_ITERATION, Method.MODIFIED_POLICY_ITERATION):
        result, rows = policy_iteration(system, environment, progress=progress)
        if environment.topological:
            result = replace(result, events=(*result.events, Kind.TOGETHER(what="policies")))
    elif environment.topological:
        if sweeps_in_colours(environment.method):
            raise UnsupportedError(f"{environment.method} of one component after the other")
        result, rows = _topological_iteration(model, unknown, system, environment, progress), None
    else:
        result, rows = _value_iteration(model, unknown, system, solver, environment, progress)
    if not want_strategy:
        return result
    if rows is None or not solver.is_proper(rows):
        rows = _strategy(model, unknown, system, solver, environment, result.values)
    strategy = np.full(model.num_states, ANY_CHOICE, dtype=index_dtype(model.matrix.num_rows))
    choices = np.flatnonzero(model.rows_of(unknown))
    strategy[unknown] = choices[rows]
    return replace(result, strategy=strategy)


def _value_iteration(
    model: ExplicitModel,
    unknown: MaskArray,
    system: SweepSystem,
    solver: DirectPolicyIteration,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> tuple[SolveResult, IndexArray | None]:
    """Return the result, and the optimal rows of the groups if policy iteration had to find it."""

    def solve_directly(x: FloatArray) -> tuple[FloatArray, float]:
        _require_proper(model, unknown, system)
        return solver.solve(x)

    if direct.at_once(environment, system):
        started = time.perf_counter()
        operations_a_policy = 2e7  # 0.01 s.
        soon = DirectPolicyIteration(system, operations_a_policy)
        # Where some strategy stays for ever, or factors fill up, iterations tell more.
        with contextlib.suppress(MemoryError, RuntimeError):
            _require_proper(model, unknown, system)
            solved = soon.solve(np.where(unknown, 0.0, system.start))
            how = f"{BY_POLICIES} ({soon.policies} policies)"
            result = direct.direct_result(
                system, environment, solved, "Iterative method", started, how=how
            )
            return result, soon.rows
    result = solve_system(
        system,
        environment,
        "Iterative method",
        direct=solve_directly if environment.automatic and solver.fits else None,
        direct_name=BY_POLICIES,
        by_components=lambda limits: _topological_iteration(
            model, unknown, system, environment, progress, limits
        ),
        progress=progress,
    )
    return result, solver.rows


def _topological_iteration(
    model: ExplicitModel,
    unknown: MaskArray,
    system: SweepSystem,
    environment: SolverEnvironment,
    progress: Progress | None,
    limits: PartLimits = PartLimits(),
) -> SolveResult:
    proper = functools.cache(lambda: _is_proper(model, unknown, system))

    def by_policies(part: SweepSystem, x: FloatArray) -> tuple[FloatArray, float]:
        solver = DirectPolicyIteration(part)
        if not solver.fits:
            raise RuntimeError(f"{part.num_updates} states are too many for elimination")
        _require(proper())
        return solver.solve(x)

    return solve_topologically(
        system,
        environment,
        "Iterative method",
        direct=by_policies,
        direct_name=BY_POLICIES,
        limits=limits,
        progress=progress,
    )


def _strategy(
    model: ExplicitModel,
    unknown: MaskArray,
    system: SweepSystem,
    solver: DirectPolicyIteration,
    environment: SolverEnvironment,
    values: FloatArray,
) -> IndexArray:
    """Return the optimal rows of the groups, from values that are nearly optimal."""
    if environment.automatic and solver.fits:
        # Values within epsilon cannot tell choices apart that differ by less; policies can.
        with contextlib.suppress(MemoryError, RuntimeError):
            _require_proper(model, unknown, system)
            solver.solve(values)
    if solver.rows is not None:
        return solver.rows
    return optimal_rows(system, values, solver.ends(values))


def _require_proper(model: ExplicitModel, unknown: MaskArray, system: SweepSystem) -> None:
    """Raise if a minimum of probabilities has end components among the unknown states."""
    _require(_is_proper(model, unknown, system))


def _require(proper: bool) -> None:
    if not proper:
        raise ImproperPolicyError("some strategy stays among the unknown states for ever")


def _is_proper(model: ExplicitModel, unknown: MaskArray, system: SweepSystem) -> bool:
    """Return whether a minimum of probabilities has no end components among the unknown states.

    Who stays in one has probability 0, which no comparison of choices shows. The precomputation of
    probability 0 leaves none.
    """
    if system.direction is not Direction.MINIMISE or system.offset is not None:
        return True
    return bool(operations_of(model).must_approach(~unknown, unknown).all())
