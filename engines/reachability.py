"""Until probabilities and reachability rewards: x = b + A x on the states not known beforehand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.environment import Convention, Method, SolverEnvironment
from engines.errors import UnsupportedError
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, MaskArray, index_dtype
from engines.iterate import Progress
from engines.linear import direct
from engines.model import ExplicitModel, ModelKind
from engines.result import SolveResult
from engines.solve import solve_system
from engines.system import Direction, Scaling, SweepSystem, rows_of_states


def solve_reachability(
    model: ExplicitModel,
    unknown: MaskArray,
    start: FloatArray,
    environment: SolverEnvironment,
    *,
    rewards: FloatArray | None = None,
    direction: Direction | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute until probabilities or expected reachability rewards.

    The caller has done the precomputation: `unknown` are the states left over, and `start` holds
    the values of all the others (1 and 0 for until; 0 at the target and infinity for rewards).

    Parameters
    ----------
    model
        A DTMC, a CTMC (its embedded chain is solved), or an MDP.
    unknown
        States to solve for, shape (states,).
    start
        Known values, and the first iterate of the unknown states, shape (states,).
    environment
        Method, termination, limits, device.
    rewards
        None for probabilities. Else shape (states,), for MDPs (choices,): the reward of a step;
        for CTMCs of a unit of time.
    direction
        MDPs: minimise or maximise.
    progress
        Called after each batch of sweeps.

    Raises
    ------
    UnsupportedError
        For a method that does not fit the model.
    """
    if not np.any(unknown):
        raise ValueError("no state is unknown: nothing to solve")
    if model.kind is ModelKind.MDP:
        return _solve_mdp(model, unknown, start, environment, rewards, direction, progress)
    if environment.method is Method.VALUE_ITERATION:
        raise UnsupportedError(f"value iteration is for MDPs; the model is a {model.kind}")

    states = rows_of_states(unknown)
    matrix = model.matrix if states is None else model.matrix.select_rows(states)
    offset = None if rewards is None else (rewards if states is None else rewards[states])
    if model.kind is ModelKind.CTMC:
        matrix, offset = _embedded(matrix, offset)
    if offset is not None and environment.convention is Convention.SPARSE:
        # PRISM's sparse engine starts expected rewards from b itself.
        start = np.array(start, dtype=np.float64)
        start[unknown] = offset
    method = Method.JACOBI if environment.automatic else environment.method
    plain = SweepSystem(matrix, start, offset, states)
    system = replace(
        plain,
        scaling=Scaling.NONE if method is Method.POWER else Scaling.DIAGONAL,
        omega=environment.omega if method is Method.JOR else 1.0,
    )

    def solve_directly(_: FloatArray) -> tuple[FloatArray, float]:
        return direct.solve_reachability_system(plain)

    return solve_system(
        system,
        environment,
        method,
        direct=solve_directly if direct.fits(matrix) else None,
        progress=progress,
    )


def _embedded(rates: CsrMatrix, rewards: FloatArray | None) -> tuple[CsrMatrix, FloatArray | None]:
    """Return the embedded chain's rows and the rewards of a step, for rows of a rate matrix."""
    exits = rates.row_sums()
    probabilities = replace(rates, values=rates.values / exits[rates.row_of_entry()])
    return probabilities, None if rewards is None else rewards / exits


def _solve_mdp(
    model: ExplicitModel,
    unknown: MaskArray,
    start: FloatArray,
    environment: SolverEnvironment,
    rewards: FloatArray | None,
    direction: Direction | None,
    progress: Progress | None,
) -> SolveResult:
    groups = model.row_group_offsets
    if direction is None or groups is None:
        raise ValueError("an MDP needs row groups and a direction: minimise or maximise")
    states = rows_of_states(unknown)
    matrix, offset = model.matrix, rewards
    if states is not None:
        choices, groups = _choices_of(states, groups)
        matrix = matrix.select_rows(choices)
        offset = None if rewards is None else rewards[choices]
    system = SweepSystem(matrix, start, offset, states, group_offsets=groups, direction=direction)
    return solve_system(system, environment, "Iterative method", progress=progress)


def _choices_of(states: IndexArray, groups: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return the choices of the given states, and the offsets of each state's among them."""
    counts = np.diff(groups)[states]
    offsets = np.zeros(len(states) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    shift = groups[states].astype(np.int64) - offsets[:-1]
    choices = np.arange(offsets[-1]) + np.repeat(shift, counts)
    return choices, offsets.astype(index_dtype(int(offsets[-1])))
