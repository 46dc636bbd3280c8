"""Bounds of long-run averages in one bottom component, by the renewal-reward theorem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.environment import SolverEnvironment
from engines.formats.csr import CsrMatrix, FloatArray, MaskArray, index_dtype
from engines.intervals import reachability_reward_bounds
from engines.iterate import Progress
from engines.model import ExplicitModel, ModelKind, RewardStructure
from engines.result import SolveResult
from engines.two_sided import ROUNDING_SLACK, UNIT_ROUNDOFF


def long_run_average_bounds(
    model: ExplicitModel,
    members: MaskArray,
    weights: FloatArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Bound the long-run average of weights in a bottom strongly connected component.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    members
        The component, shape (states,).
    weights
        Shape (states,), finite and not negative: of a step (DTMC) or a unit of time (CTMC). The
        mask of a set gives the probability of being in it in the long run.
    environment
        The width of the bounds is about twice epsilon, relative to the average.
    progress
        Called after each batch of sweeps.

    Returns
    -------
    The result of both solves; its values and bounds have shape (states,), the same number for
    every member and 0 elsewhere.

    Raises
    ------
    ConvergenceError, InvalidModelError
        As `reachability_reward_bounds`.
    ValueError
        For an MDP, or a set that is empty or is left.

    Notes
    -----
    A chain starts afresh whenever it comes back to a state r, so that the average is the weight
    expected between two visits of r over the time expected between them (for example Ross 1996,
    Stochastic Processes, theorem 3.6.1). Both are expected rewards until r is reached, which
    interval iteration bounds.
    """
    if model.kind is ModelKind.MDP:
        raise ValueError("long-run averages are bounded in a chain, not in an MDP")
    chain = _component(model, members)
    if chain.num_states == 1:
        return _spread(SolveResult.exact(weights[members], environment.method), members, None)
    anchor = int(np.argmax(np.bincount(chain.matrix.columns, minlength=chain.num_states)))
    target = np.zeros(chain.num_states, dtype=np.bool_)
    target[anchor] = True
    parts, ends = [], []
    for earned in (np.asarray(weights, dtype=np.float64)[members], np.ones(chain.num_states)):
        rewards = RewardStructure("", earned)
        part = reachability_reward_bounds(chain, rewards, target, environment, progress=progress)
        parts.append(part)
        ends.append(_over_a_cycle(chain, anchor, float(earned[anchor]), part))
    (least, most), (shortest, longest) = ends
    outwards = 2.0 * UNIT_ROUNDOFF
    lower = least / longest * (1.0 - outwards)
    upper = most / shortest * (1.0 + outwards)
    width = upper - lower
    if not environment.absolute and width > 0.0:
        width = width / lower if lower > 0.0 else np.inf
    average = np.full(chain.num_states, lower + (upper - lower) / 2.0)
    result = replace(SolveResult.combined(average, parts, width / 2.0), change=width)
    return _spread(result, members, (lower, upper))


def _component(model: ExplicitModel, members: MaskArray) -> ExplicitModel:
    """Return the chain of the component alone."""
    states = np.flatnonzero(members)
    if len(states) == 0:
        raise ValueError("the component has no state")
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


def _over_a_cycle(
    chain: ExplicitModel, anchor: int, earned: float, onwards: SolveResult
) -> tuple[float, float]:
    """Return bounds of the reward from a visit of the anchor to the next one."""
    row = chain.matrix.select_rows(np.array([anchor]))
    exit_rate = float(np.sum(row.values, dtype=np.longdouble))
    by_time = chain.kind is ModelKind.CTMC
    rounding = (2.0 * row.num_entries + ROUNDING_SLACK) * UNIT_ROUNDOFF
    ends = []
    for bound in onwards.bounds or (onwards.values, onwards.values):
        after = float(np.sum(row.values * bound[row.columns]))
        ends.append((earned + after) / exit_rate if by_time else earned + after)
    return ends[0] * (1.0 - rounding), ends[1] * (1.0 + rounding)


def _spread(
    result: SolveResult, members: MaskArray, bounds: tuple[float, float] | None
) -> SolveResult:
    """Return the result for all states, the average at each member."""

    def of_all(values: FloatArray | float) -> FloatArray:
        spread = np.zeros(len(members))
        spread[members] = values
        return spread

    lower, upper = bounds or (result.values, result.values)
    spread = replace(result, values=of_all(result.values), two_sided=True)
    return replace(spread, bounds=(of_all(lower), of_all(upper)))
