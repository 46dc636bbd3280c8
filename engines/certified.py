"""Bounds around a direct solution, verified by a sweep: for chains whose sweeps are too slow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.cpu.two_sided import CpuTwoSidedSweeper
from engines.environment import SolverEnvironment
from engines.linear import direct
from engines.narrow import Narrowing, measured_width
from engines.result import Status
from engines.system import SweepSystem
from engines.two_sided import ROUNDING_SLACK, TwoSidedSystem, rounding_of_rows

ATTEMPTS = 4
MARGIN = 4.0
"""The error allowed to each row, in units of what rounding and the residual show."""


def certify(
    plain: SweepSystem, environment: SolverEnvironment, slow: Narrowing
) -> Narrowing | None:
    """Return verified bounds around the direct solution of a chain's equations.

    Parameters
    ----------
    plain
        The equations x = b + A x of states that are left with probability 1, without scaling.
    environment
        Epsilon, relative or absolute.
    slow
        How the sweeps ended that were too slow; its bounds hold, and are taken where they are
        better.

    Returns
    -------
    The bounds, or None where they could not be verified.

    Notes
    -----
    For the solution x of the factorised system let e_i be what rounding and the residual of row i
    amount to, and let w solve w = c e + A w. Then x + w does not rise in a sweep, nor does x − w
    fall, if c is large enough: an iterate that does not rise is an upper bound, and one that does
    not fall a lower bound, because the equations have one solution. Both are checked by sweeps
    that round outwards, so that nothing depends on the quality of x and w.
    """
    matrix, size = plain.matrix, plain.num_states
    states = slice(None) if plain.states is None else plain.states
    try:
        values, _ = direct.solve_reachability_system(plain, as_given=True)
        from scipy.sparse import csr_array

        shape = (matrix.num_rows, size)
        array = csr_array((matrix.values, matrix.columns, matrix.row_offsets), shape=shape)
        offset = 0.0 if plain.offset is None else plain.offset
        residual = np.abs(array @ values + offset - values[states])
        error = (
            MARGIN * (rounding_of_rows(matrix, ROUNDING_SLACK) * np.abs(values[states]) + residual)
            + 1e-300
        )
        sources = replace(plain, start=np.zeros(size), offset=error)
        reach, _ = direct.solve_reachability_system(sources, as_given=True)
    except (MemoryError, RuntimeError):
        return None
    for attempt in range(ATTEMPTS):
        margin = MARGIN**attempt * np.abs(reach)
        lower, upper = np.maximum(values - margin, 0.0), values + margin
        if not np.isfinite(upper).all():
            return None
        sweeper = CpuTwoSidedSweeper(
            TwoSidedSystem(replace(plain, start=lower), upper), -1.0, environment.absolute
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
        f"sweeps are too slow here ({slow.iterations} made): bounds around a sparse LU solution, "
        "verified by a sweep"
    )
    if not narrow_enough:
        note += f"; they are {width:.1e} apart, more than epsilon {environment.epsilon:.1e}"
    status = Status.CONVERGED if narrow_enough else Status.CHANGE_ONLY
    return Narrowing(lower, upper, status, slow.iterations, note)
