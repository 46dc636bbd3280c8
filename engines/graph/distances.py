"""Least numbers of steps to a set of states."""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, ranges
from engines.host.products import from_entries
from engines.model.csr import CsrMatrix


def distances(
    sources: IndexArray, successors: IndexArray, goal: MaskArray, most_layers: int = 4_000
) -> FloatArray:
    """Return the least number of steps to the goal, shape (states,); infinite without a way.

    Parameters
    ----------
    sources, successors
        The edges, each of shape (edges,).
    goal
        Shape (states,).
    most_layers
        As in `distances_by`.
    """
    size = len(goal)
    backwards = from_entries(successors, sources, np.ones(len(sources)), size, size)
    return distances_by(backwards, goal, most_layers)


def distances_by(backwards: CsrMatrix, goal: MaskArray, most_layers: int = 4_000) -> FloatArray:
    """Return the same for edges that have been turned round.

    Parameters
    ----------
    backwards
        The states that lead to each state, in its row.
    goal
        Shape (states,).
    most_layers
        So many are looked at one after the other, in some ten microseconds each; a deeper graph is
        left to SciPy, which takes 0.1 s to import.
    """
    size = len(goal)
    steps = np.where(goal, 0.0, np.inf)
    layer, distance = np.flatnonzero(goal), 0
    first = np.empty(size, dtype=np.int64)
    while len(layer):
        distance += 1
        if distance > most_layers:
            return _by_scipy(backwards, goal)
        begins, ends = backwards.row_offsets[layer], backwards.row_offsets[layer + 1]
        lengths = ends - begins
        found = backwards.columns[ranges(begins, lengths)]
        found = found[np.isinf(steps[found])]
        steps[found] = distance
        # Each state once: where the last that wrote there is.
        first[found] = np.arange(len(found))
        layer = found[first[found] == np.arange(len(found))]
    return steps


def _by_scipy(backwards: CsrMatrix, goal: MaskArray) -> FloatArray:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    arrays = (backwards.values, backwards.columns, backwards.row_offsets)
    graph = csr_array(arrays, shape=(len(goal), len(goal)))
    steps: FloatArray = dijkstra(
        graph, indices=np.flatnonzero(goal), unweighted=True, min_only=True
    )
    return steps
