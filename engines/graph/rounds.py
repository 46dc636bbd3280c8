"""How many rounds PRISM's searches for probabilities 0 and 1 take, which its log tells.

Ours are found edge by edge. PRISM's go round over all states, each time with the set of the round
before, until nothing changes.

Source: `explicit.MDPModelChecker` (prob0, prob1) and `mtbdd` (Prob0A, Prob0E, Prob1A, Prob1E) of
PRISM.
"""

from __future__ import annotations

import numpy as np

from engines.arrays import MaskArray, offsets_of
from engines.devices.graph import operations_of
from engines.host.graph import CpuGraph
from engines.model.explicit import ExplicitModel, ModelKind
from engines.systems.one_sided import Direction


def rounds_of_prob0(
    model: ExplicitModel, remain: MaskArray, target: MaskArray, direction: Direction | None
) -> int:
    """Return the rounds of a search for probability 0.

    Parameters
    ----------
    model, remain, target, direction
        As of `engines.graph.prob01.prob0`.
    """
    every = direction is Direction.MINIMISE
    return _graph(model).rounds(target, remain & ~target, None, every=every)[0]


def rounds_of_prob1(
    model: ExplicitModel,
    remain: MaskArray,
    target: MaskArray,
    direction: Direction | None,
    *,
    on_diagrams: bool,
) -> int:
    """Return the rounds of a search for probability 1, of both loops together.

    Parameters
    ----------
    model, remain, target, direction
        As of `engines.graph.prob01.prob1`.
    on_diagrams
        Whether as of PRISM's symbolic engines: they begin where the probability may be more than 0,
        and each inner loop without the target.
    """
    graph, through = _graph(model), remain & ~target
    every = model.kind is ModelKind.MDP and direction is Direction.MINIMISE
    kept = np.ones(model.num_states, dtype=np.bool_)
    if on_diagrams:
        kept = graph.may_reach(target, through)
    first = 1 if on_diagrams and target.any() else 0
    rounds = 0
    while True:
        count, found = graph.rounds(target, through, _within(model, kept), every=every)
        rounds += first + count
        if np.array_equal(found, kept):
            return rounds
        kept = found


def _graph(model: ExplicitModel) -> CpuGraph:
    graph = operations_of(model)
    assert isinstance(graph, CpuGraph)
    return graph


def _within(model: ExplicitModel, states: MaskArray) -> MaskArray:
    """Return the rows all of whose entries lead to some states, shape (rows,)."""
    matrix = model.matrix
    outside = offsets_of(~states[matrix.columns] & (matrix.values != 0.0))
    inside: MaskArray = outside[matrix.row_offsets[1:]] == outside[matrix.row_offsets[:-1]]
    return inside
