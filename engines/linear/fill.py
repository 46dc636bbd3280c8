"""Whether the factors of a sparse system fill up, told before they are computed."""

from __future__ import annotations

import numpy as np

from engines.cpu.sparse_tools import from_entries
from engines.formats.csr import IndexArray
from engines.graph.components import sccs
from engines.graph.distances import distances_by
from engines.model import ExplicitModel, ModelKind

SURELY_SMALL = 2_000
"""Even a full matrix of so many rows is factorised in seconds."""

WIDEST_LEVEL = 2_000
LARGEST_BAND = 200_000_000
"""Limits within a strongly connected component: states at one distance from a state at the rim, and
the product of states and width, which bounds the entries of a banded factorisation. Where all
states are near each other, factors fill up, however few the entries of a row: three random
successors of 8,000 states give 9 million entries, where a protocol of 166,000 states gives 0.75
million."""


def require_little_fill(row: IndexArray, column: IndexArray, size: int) -> None:
    """Raise if the LU factors of a system may fill up.

    Parameters
    ----------
    row, column
        Places of the entries off the diagonal, each of shape (entries,).
    size
        Number of unknowns.

    Raises
    ------
    RuntimeError
        If they may.

    Notes
    -----
    What leads from one strongly connected component to another is not eliminated into either, so
    that each fills up by itself (Duff and Reid 1978, block triangular form). Within one, the states
    at one distance from any state separate the nearer from the farther ones; an order that follows
    the distances from a state at the rim is that of Cuthill and McKee (1969), and fills no more
    than a band as wide as two levels.
    """
    if size <= SURELY_SMALL:
        return
    graph = from_entries(row, column, np.ones(len(row)), size, size)
    found = sccs(ExplicitModel(ModelKind.DTMC, graph))
    component, count = found.labels, found.count
    inner = component[row] == component[column]
    one, other = row[inner], column[inner]
    places = np.append(one, other), np.append(other, one)
    both_ways = from_entries(*places, np.ones(2 * len(one)), size, size)
    rim = np.unique(component, return_index=True)[1]
    level = np.zeros(size, dtype=np.int64)
    for _ in range(2):
        at_rim = np.zeros(size, dtype=np.bool_)
        at_rim[rim] = True
        level = distances_by(both_ways, at_rim).astype(np.int64)
        # The farthest state of each component, last in this order, lies at its rim.
        order = np.lexsort((level, component))
        rim = order[np.append(np.flatnonzero(np.diff(component[order])), size - 1)]
    members = np.bincount(component, minlength=count)
    place, widths = np.unique(component * (level.max() + 1) + level, return_counts=True)
    owners = members[place // (level.max() + 1)]
    full = (widths > WIDEST_LEVEL) | (widths * owners > LARGEST_BAND)
    if full.any():
        worst = int(np.argmax(np.where(full, widths * owners, 0)))
        raise RuntimeError(
            f"the factors of {owners[worst]} states would fill up ({widths[worst]} at one distance)"
        )
