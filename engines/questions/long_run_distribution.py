"""The long-run distribution over the states, from an initial one: -ss."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, index_dtype, sums_by_row
from engines.errors import UnsupportedError
from engines.graph.components import Components, bsccs, closed_part
from engines.graph.prob01 import reachable
from engines.host.products import transposed
from engines.methods import direct
from engines.methods.direct import classes_at_once
from engines.model.csr import CsrMatrix
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.initial import check_distribution
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.questions.component_averages import most_visited
from engines.questions.long_run import put_together, refuse_choices
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import steady_state_of
from engines.solve.two_sided import bounded_result, solve_two_sided
from engines.systems.one_sided import SweepSystem, rows_of_states
from engines.systems.plain import accurate_row_sums
from engines.systems.two_sided import ROUNDING_SLACK, UNIT_ROUNDOFF

SHARE = 0.3
"""Part of a width for each of three: a state's weight, the sum of all, the way to the BSCC."""

OUTWARDS = ROUNDING_SLACK * UNIT_ROUNDOFF
SUM_ROUNDOFF = float(np.finfo(np.longdouble).eps)


@dataclass(frozen=True)
class _Between:
    """Bounds of some numbers; without bounds both are the numbers, which have the error."""

    lower: FloatArray
    upper: FloatArray
    error: float = 0.0


@dataclass(frozen=True)
class _Question:
    """What is asked, what the graph says of it, and the solves that it has taken."""

    model: ExplicitModel
    components: Components
    environment: SolverEnvironment
    progress: Progress | None
    parts: list[SolveResult]

    @property
    def recurrent(self) -> MaskArray:
        """The states of the BSCCs, shape (states,)."""
        return self.components.labels >= 0

    def of_a_part(self, states: int) -> SolverEnvironment:
        """Return the environment of one of the solves that bounds are made of."""
        environment = self.environment
        epsilon = SHARE * environment.epsilon
        if environment.absolute:
            epsilon /= states
        options = replace(environment.interval, lower=None, upper=None)
        return replace(environment, epsilon=epsilon, interval=options, topological=False)


def steady_state_distribution(
    model: ExplicitModel,
    initial: FloatArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the long-run distribution over the states, from an initial distribution.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    initial
        The initial distribution, shape (states,).
    environment, progress
        As in `engines.questions.until.until_probabilities`, for each of several solves; bounds are
        swept by Jacobi. Probabilities that are beyond the floating-point numbers have no narrow
        relative bounds.

    Returns
    -------
    The result; its values, of shape (states,), sum to 1. With `bounds` its error estimate is a
    bound.

    Raises
    ------
    ValueError
        If `initial` is not a distribution over the model's states.
    UnsupportedError
        For an MDP, and for a method that does not fit.

    Notes
    -----
    The expected visits y to the transient states solve y = initial + y P, one system for all
    BSCCs; what leaves them is the probability of each BSCC, by which its steady state is scaled.
    Visits are counted without those to a state from itself, which cancels no digits. Without bounds
    the probabilities of the BSCCs are normalised, which at most doubles their relative error; the
    error estimate adds that to the largest of the steady states.

    With bounds: between two visits of a state r of a BSCC, the time spent in a state j, over that
    in r, is z_j = Σ_i z_i q_ij / q_j with z_r = 1; its share of the sum of all is the stationary
    probability of j. As the visits do, these numbers solve a system of non-negative numbers with
    one solution, of the transposed chain, so that sweeps from 0 are lower bounds, and upper ones
    can be guessed and verified as in optimistic value iteration. Two solves do for all BSCCs
    together.
    """
    refuse_choices(model, "steady-state probabilities")
    two_sided = environment.two_sided
    if two_sided and not environment.unnamed and environment.method is not Method.JACOBI:
        raise UnsupportedError(
            f"bounds of a distribution are swept by Jacobi, not by {environment.method}"
        )
    initial = check_distribution(initial, model.num_states)
    question = _Question(model, bsccs(model, environment), environment, progress, [])
    entered = _entered(question, initial)
    sizes = question.components.sizes()
    shares_of = _shares_between if two_sided else _shares
    within = shares_of(question, (sizes > 1) & (entered.upper > 0.0))
    recurrent, parts = question.recurrent, question.parts
    labels = question.components.labels[recurrent]

    def product(first: FloatArray, second: FloatArray, rounding: float) -> FloatArray:
        values = np.zeros(model.num_states)
        # In a BSCC of one state the share is 1, and nothing rounds.
        factor = np.where(sizes == 1, 1.0, 1.0 + rounding)[labels]
        values[recurrent] = first[labels] * second[recurrent] * factor
        return values

    if not two_sided:
        values = product(entered.lower, within.lower, 0.0)
        return put_together(values, parts, entered.error + within.error, environment)
    lower = product(entered.lower, within.lower, -OUTWARDS)
    return bounded_result(lower, product(entered.upper, within.upper, OUTWARDS), parts, environment)


def _entered(question: _Question, initial: FloatArray) -> _Between:
    """Return the probability of ending in each BSCC, shape (BSCCs,)."""
    components, recurrent = question.components, question.recurrent
    total = float(np.sum(initial, dtype=np.longdouble))
    if components.count == 1:
        return _Between(np.array([total]), np.array([total]))
    environment, labels = question.environment, components.labels
    two_sided = environment.two_sided
    sources = (initial > 0.0) & ~recurrent
    visited = np.zeros(0, dtype=np.int64)
    if sources.any():
        reached = reachable(question.model, sources, environment=environment)
        visited = np.flatnonzero(reached & ~recurrent)
    onward, exits = _jumps(question.model.matrix, visited, two_sided)
    onward = onward.divide_rows(exits)
    row, last = onward.row_of_entry(), recurrent[onward.columns] & (onward.values > 0.0)
    into, leaving = labels[onward.columns[last]], onward.values[last]
    visits = _visits(question, onward, visited, initial[visited])
    outwards = OUTWARDS if len(visited) else 0.0

    def ends(bound: FloatArray, rounding: float) -> FloatArray:
        first = _sums(labels[recurrent], initial[recurrent], components.count, rounding)
        arrived = _sums(into, leaving * bound[row[last]], components.count, rounding)
        return (first + arrived) * (1.0 + rounding * outwards)

    if two_sided:
        lower, upper = ends(visits.lower, -1.0), ends(visits.upper, 1.0)
        return _Between(lower, np.minimum(upper, total))
    entered = ends(visits.lower, 0.0)
    entered *= total / entered.sum()
    error = 2.0 * visits.error
    if environment.absolute:
        error *= float(leaving.sum())
    return _Between(entered, entered, error)


def _visits(
    question: _Question, onward: CsrMatrix, states: IndexArray, initial: FloatArray
) -> _Between:
    """Solve y = initial + y P over the transient states: rewards of the transposed chain."""
    size = len(states)
    if size == 0:
        return _Between(np.zeros(0), np.zeros(0))
    environment = question.environment
    if environment.two_sided:
        environment = question.of_a_part(size)
    position = np.full(onward.num_columns, -1, dtype=index_dtype(size))
    position[states] = np.arange(size, dtype=position.dtype)
    inner = onward.select_entries(position[onward.columns] >= 0)
    forward = replace(inner, columns=position[inner.columns], num_columns=size)

    def solve(most_operations: float) -> tuple[FloatArray, float]:
        values, error = direct.visits(onward, states, initial, most_operations)
        return values[states], error

    result = solve_reachability(
        ExplicitModel(ModelKind.DTMC, transposed(forward, forward.values)),
        np.ones(size, dtype=np.bool_),
        np.zeros(size),
        environment,
        rewards=initial,
        progress=question.progress,
        directly=solve,
        upper=np.full(size, np.inf),
    )
    question.parts.append(result)
    lower, upper = result.bounds or (result.values, result.values)
    return _Between(lower, upper, result.error_estimate)


def _shares(question: _Question, wanted: MaskArray) -> _Between:
    """Return the steady states of the wanted BSCCs, shape (states,); 1 in all others."""
    model, environment = question.model, question.environment
    labels, recurrent = question.components.labels, question.recurrent
    values, largest = np.where(recurrent, 1.0, 0.0), 0.0
    if environment.automatic:
        solved, part = classes_at_once(environment, model.matrix, labels, wanted)
        if part is not None:
            inside = recurrent & solved[labels]
            values[inside] = part.values[inside]
            largest = part.error_estimate
            question.parts.append(part)
            wanted = wanted & ~solved
    for _, states in question.components.members(wanted):
        part = steady_state_of(model, states, environment, progress=question.progress)
        question.parts.append(part)
        largest = max(largest, part.error_estimate)
        values[states] = part.values
    return _Between(values, values, largest)


def _shares_between(question: _Question, wanted: MaskArray) -> _Between:
    """Return bounds of what `_shares` estimates."""
    labels, recurrent = question.components.labels, question.recurrent
    lower = np.where(recurrent, 1.0, 0.0)
    upper = lower.copy()
    if not wanted.any():
        return _Between(lower, upper)
    states = np.flatnonzero(recurrent & wanted[labels])
    here = (np.cumsum(wanted) - 1)[labels[states]]
    times, num_classes = _times(question, states, here), int(np.count_nonzero(wanted))
    least = _sums(here, times.lower, num_classes, -1.0)[here]
    most = _sums(here, times.upper, num_classes, 1.0)[here]
    # Of the sum, a state's own part has the same end as the state; the others have the other one.
    # The parts taken away are smaller than their sums, whose rounding they are off by at most.
    spare = OUTWARDS + len(states) * SUM_ROUNDOFF
    # Where a solve has failed there may be no upper bound.
    finite = np.isfinite(most)
    own = times.upper[finite]
    others_most = np.full(len(most), np.inf)
    others_most[finite] = np.maximum(most[finite] - own, 0.0) + spare * most[finite]
    others_least = np.maximum(least - times.lower - spare * least, 0.0)
    lower[states] = times.lower / (times.lower + others_most) * (1.0 - OUTWARDS)
    with np.errstate(invalid="ignore"):
        share = times.upper / (times.upper + others_least)
    upper[states] = np.minimum(np.where(np.isfinite(share), share, 1.0) * (1.0 + OUTWARDS), 1.0)
    return _Between(lower, upper)


def _times(question: _Question, states: IndexArray, labels: IndexArray) -> _Between:
    """Bound the time in each of the states between two visits of one of its class.

    Parameters
    ----------
    question
        What is asked.
    states, labels
        All states of some BSCCs, and their classes.

    Returns
    -------
    Shape (len(states),): the times over that of the state whose visits they lie between.
    """
    chain = closed_part(question.model, states)
    anchors = most_visited(chain, labels)
    unknown = np.ones(chain.num_states, dtype=np.bool_)
    unknown[anchors] = False
    onward, exits = _jumps(chain.matrix, np.arange(chain.num_states), accurately=True)
    inflow = transposed(onward, onward.values).divide_rows(exits)
    rows, start = np.flatnonzero(unknown), np.where(unknown, 0.0, 1.0)
    system = SweepSystem(inflow.select_rows(rows), start, None, rows_of_states(unknown))

    def solve() -> tuple[FloatArray, float]:
        given = onward.select_rows(anchors)
        started = sums_by_row(given.columns, given.values, chain.num_states)[rows]
        found, error = direct.visits(onward.select_rows(rows), rows, started)
        found[anchors] = 1.0
        return found, error

    result = solve_two_sided(
        system,
        np.where(unknown, np.inf, start),
        question.of_a_part(chain.num_states),
        solve=solve,
        progress=question.progress,
    )
    question.parts.append(result)
    assert result.bounds is not None
    return _Between(*result.bounds)


def _jumps(matrix: CsrMatrix, states: IndexArray, accurately: bool) -> tuple[CsrMatrix, FloatArray]:
    """Return rows without their loops, and what is left of each; 1 where that is nothing."""
    rows = matrix.select_rows(states)
    rows = rows.select_entries(rows.columns != states[rows.row_of_entry()])
    exits = rows.row_sums()
    if accurately:
        exits = accurate_row_sums(rows.row_of_entry(), rows.values, rows.num_rows)
    return rows, np.where(exits > 0.0, exits, 1.0)


def _sums(labels: IndexArray, values: FloatArray, count: int, rounding: float) -> FloatArray:
    """Return the sum of the non-negative values of each label, shape (count,).

    It is a lower bound where `rounding` is -1, an upper one where that is 1, and else an estimate.
    """
    if rounding == 0.0:
        return np.asarray(np.bincount(labels, weights=values, minlength=count), dtype=np.float64)
    sums = np.zeros(count, dtype=np.longdouble)
    if len(labels):
        order = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
        sums[labels[order[starts]]] = np.add.reduceat(values[order].astype(np.longdouble), starts)
    relative = len(labels) * SUM_ROUNDOFF + 2.0 * UNIT_ROUNDOFF
    return sums.astype(np.float64) * (1.0 + rounding * relative)
