"""The long-run distribution from an initial one, each probability between two bounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, sums_by_row
from engines.devices.graph import operations_of
from engines.devices.two_sided import two_sided_sweeper
from engines.errors import UnsupportedError
from engines.graph.components import Components, bsccs
from engines.host.products import transposed
from engines.methods import direct
from engines.model.csr import CsrMatrix
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.initial import check_distribution
from engines.model.progress import Progress
from engines.model.result import SolveResult, one_remark
from engines.questions.two_sided_steady_state import closed_part, most_visited
from engines.solve.certified import certify
from engines.solve.narrow import Batches, measured_width
from engines.solve.optimistic import narrow_by_guesses
from engines.solve.two_sided import bounded_result
from engines.systems.one_sided import SweepSystem, rows_of_states
from engines.systems.two_sided import ROUNDING_SLACK, UNIT_ROUNDOFF, TwoSidedSystem

METHODS = (Method.AUTO, Method.INTERVAL, Method.OPTIMISTIC, Method.JACOBI)

SHARE = 0.3
"""Part of epsilon for each of three: a state's weight, the sum of all, the way to the BSCC."""

SUM_ROUNDOFF = float(np.finfo(np.longdouble).eps)


@dataclass(frozen=True)
class _Between:
    lower: FloatArray
    upper: FloatArray


def steady_state_distribution_bounds(
    model: ExplicitModel,
    initial: FloatArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Bound the long-run probability of each state, from an initial distribution.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    initial
        The initial distribution, shape (states,).
    environment
        The width of the intervals, relative or absolute, as epsilon; limits, device. Probabilities
        that are beyond the floating-point numbers have no narrow relative bounds.
    progress
        Called after each batch of sweeps.

    Returns
    -------
    The result, with `bounds`; its error estimate is a bound.

    Raises
    ------
    UnsupportedError
        For an MDP, and for a method other than Jacobi.
    ValueError
        If `initial` is not a distribution over the model's states.

    Notes
    -----
    Between two visits of a state r of a BSCC, the time spent in a state j, over that in r, is
    z_j = Σ_i z_i q_ij / q_j with z_r = 1; its share of the sum of all is the stationary probability
    of j. The visits to the transient states solve y = initial + y P, and what leaves them enters
    the BSCCs. Both are systems of non-negative numbers with one solution, of the transposed chain,
    so that sweeps from 0 are lower bounds, and upper ones can be guessed and verified as in
    optimistic value iteration. Two solves do for all BSCCs together.
    """
    if model.kind is ModelKind.MDP:
        raise UnsupportedError("steady-state probabilities of an MDP depend on its strategy")
    if environment.method not in METHODS:
        raise UnsupportedError(
            f"bounds of a distribution are swept by Jacobi, not by {environment.method}"
        )
    initial = check_distribution(initial, model.num_states)
    components = bsccs(model)
    parts: list[SolveResult] = []
    entered = _entered(model, components, initial, environment, progress, parts)
    within = _shares(model, components, entered.upper > 0.0, environment, progress, parts)
    recurrent = components.labels >= 0
    labels = components.labels[recurrent]
    outwards = ROUNDING_SLACK * UNIT_ROUNDOFF
    lower, upper = np.zeros(model.num_states), np.zeros(model.num_states)
    lower[recurrent] = entered.lower[labels] * within.lower[recurrent] * (1.0 - outwards)
    upper[recurrent] = entered.upper[labels] * within.upper[recurrent] * (1.0 + outwards)
    alone = recurrent.copy()
    sizes = np.bincount(labels, minlength=components.count)
    alone[recurrent] = sizes[labels] == 1
    lower[alone] = entered.lower[components.labels[alone]]
    upper[alone] = entered.upper[components.labels[alone]]
    return bounded_result(lower, upper, parts, environment)


def _entered(
    model: ExplicitModel,
    components: Components,
    initial: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
    parts: list[SolveResult],
) -> _Between:
    """Return bounds of the probability of ending in each BSCC, shape (BSCCs,)."""
    recurrent = components.labels >= 0
    total = float(np.sum(initial, dtype=np.longdouble))
    if components.count == 1:
        return _Between(np.array([total]), np.array([total]))
    labels = components.labels[recurrent]
    there = _sums(labels, initial[recurrent], components.count)
    matrix = model.matrix
    backwards = ExplicitModel(ModelKind.DTMC, transposed(matrix, matrix.values))
    visited = operations_of(backwards).may_reach((initial > 0.0) & ~recurrent, ~recurrent)
    visited &= ~recurrent
    if not visited.any():
        return there
    exits, steps = _jumps(matrix)
    probabilities = steps / exits[matrix.row_of_entry()]
    rows = np.flatnonzero(visited)
    arriving = transposed(matrix, probabilities).select_rows(rows)
    # Of the transposed chain, only what comes from the visited states counts.
    arriving = replace(arriving, values=np.where(visited[arriving.columns], arriving.values, 0.0))
    system = SweepSystem(
        arriving, np.zeros(model.num_states), initial[rows], rows_of_states(visited)
    )
    epsilon = SHARE * environment.epsilon
    if environment.absolute:
        epsilon /= len(rows)
    inner = replace(environment, epsilon=epsilon)

    def solve() -> tuple[FloatArray, float]:
        onward = replace(matrix, values=probabilities).select_rows(rows)
        return direct.visits(onward, rows, initial[rows])

    visits = _solution(system, visited, inner, progress, parts, solve)
    row = matrix.row_of_entry()
    last = visited[row] & recurrent[matrix.columns] & (steps > 0.0)
    into, leaving = components.labels[matrix.columns[last]], probabilities[last]
    ends = []
    for bound, first, sign in ((visits.lower, there.lower, -1.0), (visits.upper, there.upper, 1.0)):
        arrived = _sums(into, leaving * bound[row[last]], components.count)
        end = first + (arrived.lower if sign < 0.0 else arrived.upper)
        ends.append(end * (1.0 + sign * ROUNDING_SLACK * UNIT_ROUNDOFF))
    return _Between(ends[0], np.minimum(ends[1], total))


def _shares(
    model: ExplicitModel,
    components: Components,
    wanted: MaskArray,
    environment: SolverEnvironment,
    progress: Progress | None,
    parts: list[SolveResult],
) -> _Between:
    """Return bounds of the stationary probabilities in the wanted BSCCs of several states."""
    labels = components.labels
    sizes = np.bincount(labels[labels >= 0], minlength=components.count)
    wanted = wanted & (sizes > 1)
    lower, upper = np.zeros(model.num_states), np.zeros(model.num_states)
    if not wanted.any():
        return _Between(lower, upper)
    states = np.flatnonzero((labels >= 0) & wanted[labels])
    chain = closed_part(model, states)
    here = (np.cumsum(wanted) - 1)[labels[states]]
    anchors = most_visited(chain, here)
    unknown = np.ones(chain.num_states, dtype=np.bool_)
    unknown[anchors] = False
    exits, steps = _jumps(chain.matrix)
    inflow = transposed(chain.matrix, steps).divide_rows(exits)
    rows = np.flatnonzero(unknown)
    start = np.where(unknown, 0.0, 1.0)
    system = SweepSystem(inflow.select_rows(rows), start, None, rows_of_states(unknown))
    epsilon = SHARE * environment.epsilon
    if environment.absolute:
        epsilon /= len(states)
    inner = replace(environment, epsilon=epsilon)

    def solve() -> tuple[FloatArray, float]:
        onward = replace(chain.matrix, values=steps)
        given = onward.select_rows(anchors)
        started = sums_by_row(given.columns, given.values, chain.num_states)[rows]
        found, error = direct.visits(onward.select_rows(rows), rows, started)
        found[anchors] = 1.0
        return found, error

    times = _solution(system, unknown, inner, progress, parts, solve)
    least = _sums(here, times.lower, len(anchors)).lower[here]
    most = _sums(here, times.upper, len(anchors)).upper[here]
    outwards = ROUNDING_SLACK * UNIT_ROUNDOFF
    # Of the sum, a state's own part has the same end as the state; the others have the other one.
    # The parts taken away are smaller than their sums, whose rounding they are off by at most.
    spare = outwards + len(states) * SUM_ROUNDOFF
    # Where a solve has failed there may be no upper bound.
    finite = np.isfinite(most)
    own = times.upper[finite]
    others_most = np.full(len(most), np.inf)
    others_most[finite] = np.maximum(most[finite] - own, 0.0) + spare * most[finite]
    others_least = np.maximum(least - times.lower - spare * least, 0.0)
    lower[states] = times.lower / (times.lower + others_most) * (1.0 - outwards)
    with np.errstate(invalid="ignore"):
        share = times.upper / (times.upper + others_least)
    upper[states] = np.minimum(np.where(np.isfinite(share), share, 1.0) * (1.0 + outwards), 1.0)
    return _Between(lower, upper)


def _jumps(matrix: CsrMatrix) -> tuple[FloatArray, FloatArray]:
    """Return the exit rate of each state, and the rate of each entry; 0 for those of loops."""
    steps = np.where(matrix.columns == matrix.row_of_entry(), 0.0, matrix.values)
    exits = np.ones(matrix.num_rows, dtype=np.longdouble)
    filled = np.flatnonzero(matrix.row_lengths())
    if len(filled):
        starts = matrix.row_offsets[filled]
        exits[filled] = np.add.reduceat(steps.astype(np.longdouble), starts)
    # An absorbing state has no jumps to divide.
    return np.where(exits > 0.0, exits, 1.0).astype(np.float64), steps


def _sums(labels: IndexArray, values: FloatArray, count: int) -> _Between:
    """Return bounds of the sum of the non-negative values of each label, shape (count,)."""
    sums = np.zeros(count, dtype=np.longdouble)
    if len(labels):
        order = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
        sums[labels[order[starts]]] = np.add.reduceat(values[order].astype(np.longdouble), starts)
    rounding = len(labels) * SUM_ROUNDOFF + 2.0 * UNIT_ROUNDOFF
    rounded = sums.astype(np.float64)
    return _Between(rounded * (1.0 - rounding), rounded * (1.0 + rounding))


def _solution(
    system: SweepSystem,
    unknown: MaskArray,
    environment: SolverEnvironment,
    progress: Progress | None,
    parts: list[SolveResult],
    solve: Callable[[], tuple[FloatArray, float]],
) -> _Between:
    """Bound the one solution of a system of non-negative numbers; add the solve to the parts.

    It is found directly by `solve`, with a bound of its relative error, where sweeps are too slow.
    """
    started = time.perf_counter()
    # A guess is not verified yet, so that any first upper iterate will do.
    sweeper, note = two_sided_sweeper(TwoSidedSystem(system, system.start), environment, -1.0)
    setup = time.perf_counter() - started
    trivial = np.where(unknown, np.inf, system.start)
    named = environment.method is Method.JACOBI
    may_give_up = not named and direct.fits(system.matrix)
    batches = Batches(sweeper, environment, progress)
    outcome = narrow_by_guesses(sweeper, trivial, environment, may_give_up, progress, batches)
    if outcome.given_up:
        outcome = certify(system, environment, outcome, solve=solve) or narrow_by_guesses(
            sweeper, trivial, environment, False, progress, batches
        )
    width = measured_width(outcome.lower, outcome.upper, environment.absolute)
    parts.append(
        SolveResult(
            values=outcome.lower,
            status=outcome.status,
            method=f"{Method.OPTIMISTIC} ({Method.JACOBI})",
            iterations=outcome.iterations,
            change=width,
            residual=measured_width(outcome.lower, outcome.upper, True),
            error_estimate=width,
            seconds=time.perf_counter() - started,
            setup_seconds=setup,
            sweeping_seconds=sweeper.seconds,
            cost=sweeper.cost,
            note=one_remark((note, outcome.note)),
            two_sided=True,
            bounds=(outcome.lower, outcome.upper),
            finished_by=outcome.finished_by,
        )
    )
    return _Between(outcome.lower, outcome.upper)
