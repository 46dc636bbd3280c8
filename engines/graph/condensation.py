"""An order of components in which each comes after all that it may enter."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.environment import SolverEnvironment
from engines.formats.csr import IndexArray
from engines.graph.components import Components
from engines.model import ExplicitModel

COMPILED_EDGES = 100_000
"""From this many edges between components on, their heights are found by numba."""


def condensation_order(
    model: ExplicitModel,
    components: Components,
    environment: SolverEnvironment | None = None,  # noqa: ARG001 - the CPU alone orders
) -> IndexArray:
    """Return the components in an order in which each comes after all that it may enter.

    The height of a component is the length of the longest path of components from there; lower
    ones come first, and among those of one height the numbers decide.

    Parameters
    ----------
    model
        A model of any kind; in an MDP, the edges are those of all choices.
    components
        Strongly connected components of the model, perhaps within a subset of its states; edges
        to states without a component do not count.
    environment
        Which device the user asked for; the order is found on the CPU, and the same for all.

    Returns
    -------
    Numbers of components, shape (components,).
    """
    if components.count < 2:
        return np.arange(components.count, dtype=components.labels.dtype)
    sources, targets = _edges_between(model, components)
    order = np.argsort(targets, kind="stable")
    offsets = np.zeros(components.count + 1, dtype=np.int64)
    np.cumsum(np.bincount(targets, minlength=components.count), out=offsets[1:])
    unseen = np.bincount(sources, minlength=components.count)
    heights = np.zeros(components.count, dtype=np.int64)
    queue = np.zeros(components.count, dtype=np.int64)
    arrays: list[NDArray[Any]] = [offsets, sources[order], unseen, heights, queue]
    if len(sources) >= COMPILED_EDGES:
        _compiled()(*arrays)
    else:
        lists = [array.tolist() for array in arrays]
        _find_heights(*lists)
        heights = np.array(lists[3], dtype=np.int64)
    return np.argsort(heights, kind="stable").astype(components.labels.dtype)


def _edges_between(
    model: ExplicitModel, components: Components
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return source and target component of each edge that leads from one to another."""
    matrix = model.matrix
    of_rows = model.states_of_rows()
    sources = np.repeat(components.labels[of_rows], matrix.row_lengths())
    targets = components.labels[matrix.columns]
    between = (sources != targets) & (sources >= 0) & (targets >= 0) & (matrix.values != 0.0)
    return sources[between].astype(np.int64), targets[between].astype(np.int64)


def _find_heights(offsets: Any, entering: Any, unseen: Any, heights: Any, queue: Any) -> None:
    """Set each component's height, those first that all they enter is known of (Kahn 1962).

    Component c is entered from ``entering[offsets[c]]`` to ``entering[offsets[c + 1] - 1]``;
    `unseen` counts the edges that leave each one.
    """
    size = 0
    for component in range(len(heights)):
        if unseen[component] == 0:
            queue[size] = component
            size += 1
    at = 0
    while at < size:
        target = queue[at]
        at += 1
        for entry in range(offsets[target], offsets[target + 1]):
            source = entering[entry]
            if heights[source] <= heights[target]:
                heights[source] = heights[target] + 1
            unseen[source] -= 1
            if unseen[source] == 0:
                queue[size] = source
                size += 1


@cache
def _compiled() -> Any:
    from numba import njit

    return njit(cache=True, error_model="numpy")(_find_heights)
