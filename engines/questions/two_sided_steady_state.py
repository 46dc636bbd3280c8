"""Bounds of long-run averages in bottom components, by the renewal-reward theorem."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, index_dtype, sums_by_row
from engines.graph.components import Components
from engines.host.products import Product, transposed
from engines.model.csr import CsrMatrix
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.questions.reachability_rewards import reachability_rewards
from engines.systems.two_sided import ROUNDING_SLACK, SMALLEST, UNIT_ROUNDOFF

SURVEY_SWEEPS = 200
"""Sweeps after which the state that is visited most often stands out, if any does."""

SHARE = 0.45
"""Part of epsilon for each of the two expected rewards whose quotient is the average."""


@dataclass(frozen=True)
class AverageBounds:
    """Bounds of the long-run average of each bottom component.

    Parameters
    ----------
    lower, upper
        Shape (components,).
    parts
        The solves that they took: none where every component has one weight.
    """

    lower: FloatArray
    upper: FloatArray
    parts: list[SolveResult]


def component_average_bounds(
    model: ExplicitModel,
    components: Components,
    weights: FloatArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> AverageBounds:
    """Bound the long-run average of weights in every bottom strongly connected component.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    components
        Its bottom components, as `engines.graph.components.bsccs` finds them.
    weights
        Shape (states,), finite and not negative: of a step (DTMC) or a unit of time (CTMC). The
        mask of a set gives the probability of being in it in the long run.
    environment
        The width of the bounds is below epsilon, relative to the average or absolute, unless
        rounding or the limit of sweeps forbids that. Bounds of rewards given by hand are not those
        of these rewards, and not looked at.
    progress
        Called after each batch of sweeps.

    Raises
    ------
    ConvergenceError
        Where no finite upper bound of the time between two visits is found.
    UnsupportedError
        For a method that does not fit.
    ValueError
        For an MDP, or a set that is left.

    Notes
    -----
    A chain starts afresh whenever it comes back to a state r, so that the average is the weight
    expected between two visits of r over the time expected between them (for example Ross 1996,
    Stochastic Processes, theorem 3.6.1). Both are expected rewards until r is reached, which
    interval iteration bounds: two solves, for all components together. The mean time in r is a
    factor of both, and left out. Any state will do for r; sweeps contract the faster, the sooner
    it is reached, so that it is one that is visited often.
    """
    if model.kind is ModelKind.MDP:
        raise ValueError("long-run averages are bounded in a chain, not in an MDP")
    labels = components.labels
    recurrent = np.flatnonzero(labels >= 0)
    least, most = np.full(components.count, np.inf), np.full(components.count, -np.inf)
    np.minimum.at(least, labels[recurrent], weights[recurrent])
    np.maximum.at(most, labels[recurrent], weights[recurrent])
    wanted = least < most
    if not wanted.any():
        return AverageBounds(least, least.copy(), [])
    states = recurrent[wanted[labels[recurrent]]]
    chain = closed_part(model, states)
    # Components are numbered anew, those left out aside.
    labels_here = (np.cumsum(wanted) - 1)[labels[states]]
    anchors = most_visited(chain, labels_here)
    target = np.zeros(chain.num_states, dtype=np.bool_)
    target[anchors] = True
    earned = np.asarray(weights, dtype=np.float64)[states]
    inner = _relative(environment, float(earned.max()))
    parts, ends = [], []
    for amounts in (earned, np.ones(chain.num_states)):
        structure = RewardStructure("", amounts)
        part = reachability_rewards(chain, structure, target, inner, progress=progress)
        parts.append(part)
        ends.append(_over_a_cycle(chain, anchors, amounts[anchors], part))
    (least_earned, most_earned), (shortest, longest) = ends
    outwards = 2.0 * UNIT_ROUNDOFF
    lower, upper = least.copy(), least.copy()
    lower[wanted] = least_earned / longest * (1.0 - outwards)
    upper[wanted] = most_earned / shortest * (1.0 + outwards)
    return AverageBounds(np.maximum(lower, least), np.minimum(upper, most), parts)


def closed_part(model: ExplicitModel, states: IndexArray) -> ExplicitModel:
    """Return the chain of states that are never left.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    states
        The states, ascending.

    Raises
    ------
    ValueError
        If a transition leads to another state.
    """
    rows = model.matrix.select_rows(states)
    place = np.full(model.num_states, -1, dtype=index_dtype(model.num_states))
    place[states] = np.arange(len(states))
    columns = place[rows.columns]
    if np.any((columns < 0) & (rows.values > 0.0)):
        raise ValueError("the set is left: it is no bottom component")
    # What is left outside are stored zeros.
    columns = np.maximum(columns, 0)
    matrix = CsrMatrix(rows.row_offsets, columns, rows.values, len(states))
    return ExplicitModel(model.kind, matrix)


def most_visited(chain: ExplicitModel, labels: IndexArray) -> IndexArray:
    """Return a state of each component that is visited often: no bound depends on which.

    Parameters
    ----------
    chain
        A DTMC or a CTMC all of whose states are recurrent.
    labels
        The component of each state, shape (states,), none of them empty.

    Returns
    -------
    Shape (components,).
    """
    matrix = chain.matrix
    moving = np.where(matrix.columns == matrix.row_of_entry(), 0.0, matrix.values)
    exits = sums_by_row(matrix.row_of_entry(), moving, matrix.num_rows)
    # A row that is 0 is that of a component of one state.
    steps = CsrMatrix(matrix.row_offsets, matrix.columns, moving, matrix.num_columns).divide_rows(
        np.where(exits > 0.0, exits, 1.0)
    )
    backwards = Product(transposed(steps, steps.values))
    visits = np.ones(chain.num_states)
    for _ in range(SURVEY_SWEEPS):
        # Staying as often as not, a periodic chain comes to rest too.
        visits = 0.5 * (visits + backwards @ visits)
    order = np.lexsort((visits, labels))
    last: IndexArray = np.cumsum(np.bincount(labels)) - 1
    return order[last]


def _relative(environment: SolverEnvironment, greatest: float) -> SolverEnvironment:
    """Return the environment of each solve, relative, for averages of at most the greatest."""
    options = replace(environment.interval, lower=None, upper=None)
    epsilon = SHARE * environment.epsilon
    if environment.absolute:
        epsilon /= max(greatest, 1e-300)
    epsilon = min(epsilon, SHARE)
    return replace(environment, epsilon=epsilon, absolute=False, bounds=True, interval=options)


def _over_a_cycle(
    chain: ExplicitModel, anchors: IndexArray, earned: FloatArray, onwards: SolveResult
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the rewards from each anchor to its next visit, times its exit rate."""
    rows = chain.matrix.select_rows(anchors)
    row = rows.row_of_entry()
    lengths = rows.row_lengths()
    rounding = (2.0 * lengths + ROUNDING_SLACK) * UNIT_ROUNDOFF
    smallest = (lengths + 1.0) * SMALLEST
    ends = []
    for bound in onwards.bounds or (onwards.values, onwards.values):
        ends.append(earned + sums_by_row(row, rows.values * bound[rows.columns], rows.num_rows))
    lower = np.maximum(ends[0] * (1.0 - rounding) - smallest, 0.0)
    return lower, ends[1] * (1.0 + rounding) + smallest
