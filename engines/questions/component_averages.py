"""Long-run averages in bottom components: by steady states, or bounded by what visits earn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, extremes, sums_by_row
from engines.graph.components import Components, closed_part
from engines.host.products import Product, transposed
from engines.methods.direct import classes_at_once
from engines.model.csr import CsrMatrix
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Progress
from engines.model.result import LEAST, SolveResult
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.steady_state import steady_state_of
from engines.systems.two_sided import ROUNDING_SLACK, SMALLEST, UNIT_ROUNDOFF

SHARE = 0.45
"""Part of epsilon for each of the two expected rewards whose quotient is the average."""


@dataclass(frozen=True)
class Averages:
    """The long-run average of each bottom component.

    Parameters
    ----------
    lower, upper
        Bounds, shape (components,); where none were asked for, both are the averages.
    decided
        Which of them have no error, shape (components,).
    error
        Estimated largest error of averages without bounds.
    parts
        The solves that they took: none where every component has one weight.
    """

    lower: FloatArray
    upper: FloatArray
    decided: MaskArray
    error: float
    parts: list[SolveResult]


def component_averages(
    model: ExplicitModel,
    components: Components,
    weights: FloatArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> Averages:
    """Compute the long-run average of weights in every bottom strongly connected component.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    components
        Its bottom components, as `engines.graph.components.bsccs` finds them.
    weights
        Shape (states,), finite and not negative: of a step (DTMC) or a unit of time (CTMC). The
        mask of a set gives the probability of being in it in the long run.
    environment, progress
        As in `engines.questions.until.until_probabilities`. The width of bounds is below epsilon
        unless rounding or the limit of sweeps forbids that. Bounds of rewards given by hand are not
        those of these rewards, and not looked at.

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
    A component whose states all have one weight needs no solve, and has one where what PRISM does
    is repeated. Without bounds each of the others
    takes one, of its steady state; with a method of our choice small ones are eliminated together.

    With bounds: a chain starts afresh whenever it comes back to a state r, so that the average is
    the weight expected between two visits of r over the time expected between them (for example
    Ross 1996, Stochastic Processes, theorem 3.6.1). Both are expected rewards until r is reached,
    which interval iteration bounds: two solves, for all components together. The mean time in r is
    a factor of both, and left out. Any state will do for r; sweeps contract the faster, the sooner
    it is reached, so that it is one that is visited often.
    """
    if model.kind is ModelKind.MDP:
        raise ValueError("long-run averages are those of a chain, not of an MDP")
    least, most = _extremes(components, weights)
    decided = least == most
    repeats = environment.repeats_prism and not environment.two_sided
    wanted = np.ones_like(decided) if repeats else ~decided
    if not wanted.any():
        return Averages(least, least, decided, 0.0, [])
    if not environment.two_sided:
        values, error, parts = _by_steady_states(
            model, components, weights, least, wanted, environment, progress
        )
        values = np.where(decided, least, values)
        return Averages(values, values, decided, error, parts)
    lower, upper = least.copy(), least.copy()
    lower[~decided], upper[~decided], parts = _between_visits(
        model, components, weights, ~decided, environment, progress
    )
    return Averages(np.maximum(lower, least), np.minimum(upper, most), decided, 0.0, parts)


def _extremes(components: Components, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest weight in each component, shape (components,)."""
    inside, labels = weights, components.labels
    if not components.everywhere:
        recurrent = labels >= 0
        inside, labels = weights[recurrent], labels[recurrent]
    if components.count == 1:
        least, most = (np.array([end]) for end in extremes(inside))
        return least, most
    least, most = np.full(components.count, np.inf), np.full(components.count, -np.inf)
    np.minimum.at(least, labels, inside)
    np.maximum.at(most, labels, inside)
    return least, most


def _by_steady_states(
    model: ExplicitModel,
    components: Components,
    weights: FloatArray,
    known: FloatArray,
    wanted: MaskArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> tuple[FloatArray, float, list[SolveResult]]:
    """Return the averages, those of all but the wanted components known, and their largest error.

    Relative errors of a steady state stay what they are in a mean; an absolute one counts once for
    each state, times its weight.
    """
    values, error = known.copy(), 0.0
    parts: list[SolveResult] = []
    if environment.automatic:
        solved, part = classes_at_once(environment, model.matrix, components.labels, wanted)
        if part is not None:
            recurrent = np.flatnonzero(components.labels >= 0)
            labels = components.labels[recurrent]
            earnings = (part.values * weights)[recurrent]
            means = sums_by_row(labels, earnings, components.count)
            values = np.where(solved, means, values)
            weight = float(weights[recurrent].max()) if environment.absolute else 1.0
            sums = sums_by_row(labels, weights[recurrent], components.count)
            lost = _underflow(sums, means, environment.absolute)[solved]
            error = part.error_estimate * weight + float(lost.max(initial=0.0))
            parts.append(part)
            wanted = wanted & ~solved
    for label, states in components.members(wanted):
        part = steady_state_of(model, states, environment, progress=progress)
        earned = weights if len(states) == len(weights) else weights[states]
        with np.errstate(invalid="ignore"):  # Infinite values of a method that diverges.
            values[label] = float(part.values @ earned)
        own = part.error_of_mean(earned, values[label])
        told = part.error_known and (isfinite(own) or not isfinite(part.error_estimate))
        parts.append(replace(part, error_known=told))
        if environment.absolute:
            own = part.error_estimate * float(earned.sum())
        error = max(error, own)
    return values, error, parts


def _underflow(sums: FloatArray, means: FloatArray, absolute: bool) -> FloatArray:
    """Return the error by probabilities that are too small for a double, given sums of weights."""
    lost: FloatArray = LEAST * sums
    if not absolute:
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = np.where(lost > 0.0, lost / means, 0.0)
    return lost


def _between_visits(
    model: ExplicitModel,
    components: Components,
    weights: FloatArray,
    wanted: MaskArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> tuple[FloatArray, FloatArray, list[SolveResult]]:
    """Return bounds of the averages of the wanted components, and the solves."""
    labels = components.labels
    states = np.flatnonzero((labels >= 0) & wanted[labels])
    chain = closed_part(model, states)
    # Components are numbered anew, those left out aside.
    anchors = most_visited(chain, (np.cumsum(wanted) - 1)[labels[states]])
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
    lower = least_earned / longest * (1.0 - outwards)
    return lower, most_earned / shortest * (1.0 + outwards), parts


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
    # After so many sweeps the state that is visited most often stands out, if any does.
    survey_sweeps = 200
    for _ in range(survey_sweeps):
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
