"""Bounds around a direct solution, verified by a sweep, where sweeps are too slow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.cpu.two_sided import CpuTwoSidedSweeper
from engines.environment import SolverEnvironment
from engines.formats.csr import FloatArray, IndexArray
from engines.linear import direct
from engines.narrow import Narrowing, measured_width
from engines.policy_iteration import DirectPolicyIteration
from engines.result import Status
from engines.strategy import row_values
from engines.system import Direction, SweepSystem
from engines.two_sided import ROUNDING_SLACK, TwoSidedSystem, rounding_of_rows

FINISHED_BY = "bounds around a direct solution"
ATTEMPTS = 4
MARGIN = 4.0
"""The error allowed to each row, in units of what rounding and the residual show."""


def certify(
    plain: SweepSystem,
    environment: SolverEnvironment,
    slow: Narrowing,
    slack: int = ROUNDING_SLACK,
) -> Narrowing | None:
    """Return verified bounds around a direct solution: of a chain, or of an MDP's best policy.

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

    Returns
    -------
    The bounds, or None where they could not be verified.

    Notes
    -----
    For the solution x of the factorised system let e_i be what rounding and the residual of row i
    amount to, and let w solve w = c e + A w, of an MDP with the choices that make it largest. Then
    x + w does not rise in a sweep, nor does x − w fall, if c is large enough: an iterate that does
    not rise is an upper bound, and one that does not fall a lower bound, because the equations have
    one solution. Both are checked by sweeps that round outwards, so that nothing depends on the
    quality of x and w, nor on the policy's being the best.
    """
    states = slice(None) if plain.states is None else plain.states
    try:
        values, reach = _solution_and_reach(plain, slow, slack)
    except (MemoryError, RuntimeError):
        return None
    for attempt in range(ATTEMPTS):
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
            break
    else:
        return None
    lower, upper = sweeper.bounds()
    lower, upper = np.maximum(lower, slow.lower), np.minimum(upper, slow.upper)
    width = measured_width(lower[states], upper[states], environment.absolute)
    narrow_enough = width < environment.epsilon
    note = (
        f"sweeps are too slow here ({slow.iterations} made): bounds around an LU solution, "
        "verified by a sweep"
    )
    if not narrow_enough:
        note += f"; they are {width:.1e} apart, more than epsilon {environment.epsilon:.1e}"
    status = Status.CONVERGED if narrow_enough else Status.CHANGE_ONLY
    return Narrowing(lower, upper, status, slow.iterations, note, finished_by=FINISHED_BY)


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
    plain: SweepSystem, slow: Narrowing, slack: int
) -> tuple[FloatArray, FloatArray]:
    """Return the direct solution x and the first guess of w, both of shape (states,)."""
    nothing = np.zeros(plain.num_states)
    if plain.group_offsets is None:
        values, _ = direct.solve_reachability_system(plain, as_given=True)
        sources = replace(plain, start=nothing, offset=_errors(plain, values, None, slack))
        return values, direct.solve_reachability_system(sources, as_given=True)[0]
    solver = DirectPolicyIteration(plain)
    solver.solve(slow.lower)
    policy = solver.rows
    assert policy is not None
    values, _ = direct.solve_reachability_system(solver.chain(policy), as_given=True)
    error = _errors(plain, values, policy, slack)
    # The worst that errors add up to, because every choice has to keep within w.
    worst = replace(plain, start=nothing, offset=error, direction=Direction.MAXIMISE)
    return values, DirectPolicyIteration(worst).solve(nothing)[0]


def _errors(
    plain: SweepSystem, values: FloatArray, policy: IndexArray | None, slack: int
) -> FloatArray:
    """Return by how much each row may miss its state's value, shape (rows,).

    A choice that the policy does not take may be worse, and not better, by as much as it likes.
    """
    worth = row_values(plain, values)
    groups = plain.group_offsets
    own = values if plain.states is None else values[plain.states]
    if groups is not None:
        own = np.repeat(own, np.diff(groups))
    missed = np.abs(worth - own)
    if policy is not None:
        better = worth - own if plain.direction is Direction.MAXIMISE else own - worth
        taken = missed[policy]
        missed = np.maximum(better, 0.0)
        missed[policy] = taken
    scale = np.maximum(np.abs(own), np.abs(worth))
    return MARGIN * (rounding_of_rows(plain.matrix, slack) * scale + missed) + 1e-300
