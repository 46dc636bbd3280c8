"""Proven bounds around a direct solution, where sweeps are too slow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.host.two_sided_sweeper import CpuTwoSidedSweeper
from engines.methods import direct
from engines.methods.policy_iteration import DirectPolicyIteration
from engines.methods.strategy import groups_of, row_values
from engines.model.environment import SolverEnvironment
from engines.model.events import Kind
from engines.model.result import ExactValues, Status
from engines.solve.narrow import Narrowing, measured_width
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.two_sided import (
    ROUNDING_SLACK,
    UNIT_ROUNDOFF,
    TwoSidedSystem,
    rounding_of_rows,
)

FINISHED_BY = "bounds around a direct solution"
MARGIN = 4.0
"""The error allowed to each row, in units of what rounding and the residual show."""


def certify(
    plain: SweepSystem,
    environment: SolverEnvironment,
    slow: Narrowing,
    slack: int = ROUNDING_SLACK,
    solve: Callable[[], tuple[FloatArray, float]] | None = None,
    exactly: ExactValues | None = None,
) -> Narrowing | None:
    """Return proven bounds around a direct solution: of a chain, or of an MDP's best policy.

    Parameters
    ----------
    plain
        The equations x = b + A x of states that are left with probability 1, whatever the choices,
        without scaling.
    environment
        Epsilon, relative or absolute.
    slow
        How the sweeps ended that were too slow; its bounds hold, and are taken where they are
        better.
    slack
        Roundings that an entry of the matrix may have suffered.
    solve
        How the solution and a bound of its relative error are found, where not by `solve_chain`.
    exactly
        Computes exact values of states, for a small MDP in which rounding hides which policy is the
        best; None for no way.

    Returns
    -------
    The bounds, or None where there are none.

    Notes
    -----
    Elimination without subtraction bounds the error of its values. The best policy of an MDP is
    proven to be so where each other choice loses by more than rounding can have made of it; else
    the bounds around its values are verified by sweeps that round outwards, and where that leaves
    them wide, the values are computed exactly if the MDP is small.
    """
    states = slice(None) if plain.states is None else plain.states
    try:
        if plain.group_offsets is None:
            values, error = solve() if solve is not None else direct.solve_chain(plain)
        else:
            solver = DirectPolicyIteration(plain, prove=True)
            values, error = solver.solve(slow.lower)
            if not solver.proven:
                found = _verified(plain, environment, slow, slack, solver)
                if exactly is None or (found is not None and found.status is Status.CONVERGED):
                    return found
                best = exactly(np.arange(plain.num_states)[states])
                if best is None:
                    return found
                values[states], error = [float(value) for value in best.values], UNIT_ROUNDOFF
    except (MemoryError, RuntimeError):
        return None
    error += 2.0 * plain.num_updates * slack * UNIT_ROUNDOFF
    margin = np.zeros(plain.num_states)
    margin[states] = (error + 4.0 * UNIT_ROUNDOFF) * values[states]
    return _narrowed(np.maximum(values - margin, 0.0), values + margin, plain, environment, slow)


def _verified(
    plain: SweepSystem,
    environment: SolverEnvironment,
    slow: Narrowing,
    slack: int,
    solver: DirectPolicyIteration,
) -> Narrowing | None:
    """Return bounds around the values of an MDP's policy, verified by a sweep.

    For its values x let e_i be what rounding and the residual of row i amount to, and let w solve
    w = c e + A w with the choices that make it largest. Then x + w does not rise in a sweep, nor
    does x − w fall, if c is large enough: an iterate that does not rise is an upper bound, and one
    that does not fall a lower bound, because the equations have one solution. Both are checked by
    sweeps that round outwards, so that nothing depends on the quality of x and w, nor on the
    policy's being the best.
    """
    values, reach = _solution_and_reach(plain, solver, slack)
    for attempt in range(4):
        margin = MARGIN**attempt * np.abs(reach)
        lower, upper = np.maximum(values - margin, 0.0), values + margin
        if not np.isfinite(upper).all():
            return None
        sweeper = CpuTwoSidedSweeper(
            TwoSidedSystem(replace(plain, start=lower), upper, slack=slack),
            -1.0,
            environment.absolute,
        )
        record = sweeper.run(1)
        if record.rises[0] == 0.0 and record.falls[0] == 0.0:
            return _narrowed(*sweeper.bounds(), plain, environment, slow)
    return None


def _narrowed(
    lower: FloatArray,
    upper: FloatArray,
    plain: SweepSystem,
    environment: SolverEnvironment,
    slow: Narrowing,
) -> Narrowing:
    """Return the better ones of two pairs of bounds, with what there is to say of them."""
    states = slice(None) if plain.states is None else plain.states
    lower, upper = np.maximum(lower, slow.lower), np.minimum(upper, slow.upper)
    width = measured_width(lower[states], upper[states], environment.absolute)
    narrow_enough = width < environment.epsilon
    kind = Kind.CERTIFIED if narrow_enough else Kind.CERTIFIED_APART
    proven = kind(sweeps=slow.iterations, width=width, epsilon=environment.epsilon)
    status = Status.CONVERGED if narrow_enough else Status.CHANGE_ONLY
    return Narrowing(lower, upper, status, slow.iterations, (proven,), finished_by=FINISHED_BY)


def may_certify(plain: SweepSystem) -> bool:
    """Return whether a direct solution may be cheap enough.

    Parameters
    ----------
    plain
        As in `certify`.
    """
    if plain.group_offsets is None:
        return direct.fits(plain.matrix)
    return DirectPolicyIteration(plain).fits


def _solution_and_reach(
    plain: SweepSystem, solver: DirectPolicyIteration, slack: int
) -> tuple[FloatArray, FloatArray]:
    """Return the policy's values x and the first guess of w, both of shape (states,)."""
    policy = solver.rows
    assert policy is not None
    values, _ = direct.solve_chain(solver.chain(policy))
    error = _errors(plain, values, policy, slack)
    nothing = np.zeros(plain.num_states)
    # The worst that errors add up to, because every choice has to keep within w.
    worst = replace(plain, start=nothing, offset=error, direction=Direction.MAXIMISE)
    return values, DirectPolicyIteration(worst).solve(nothing)[0]


def _errors(plain: SweepSystem, values: FloatArray, policy: IndexArray, slack: int) -> FloatArray:
    """Return by how much each row may miss its state's value, shape (rows,).

    A choice that the policy does not take may be worse, and not better, by as much as it likes.
    """
    worth = row_values(plain, values)
    own = values if plain.states is None else values[plain.states]
    own = np.repeat(own, np.diff(groups_of(plain)))
    taken = np.abs(worth - own)[policy]
    missed = np.maximum(worth - own if plain.direction is Direction.MAXIMISE else own - worth, 0.0)
    missed[policy] = taken
    scale = np.maximum(np.abs(own), np.abs(worth))
    return MARGIN * (rounding_of_rows(plain.matrix, slack) * scale + missed) + 1e-300
