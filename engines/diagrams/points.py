"""The value of a diagram at single states, for functions that differ from row to row."""

from __future__ import annotations

import sys

import numpy as np

from engines.cpu import host_loops
from engines.diagrams.diagram import TERMINAL, Diagram, StateNumbering
from engines.diagrams.layers import foreign_variable
from engines.formats.csr import FloatArray, IndexArray

NUMBA_POINTS = 300_000
"""From so many points on, a loop in numba repays its loading."""

NUMBA_POINTS_IF_READY = 5_000
"""The same where such loops are loaded."""

HOST_POINTS = 20_000
"""From so many points on, the host's loops repay the copy of the diagram; before numba is loaded,
however many points there are."""


def kernels_ready() -> bool:
    """Return whether any of the loops in numba is loaded, and its machinery with it."""
    kernels = sys.modules.get("engines.cpu.diagram_kernels")
    if kernels is None:
        return False
    return any(kernel.signatures for kernel in (kernels.copy_rows, kernels.count_choices))


def read_points(
    diagram: Diagram, numbering: StateNumbering, states: IndexArray, roots: IndexArray
) -> FloatArray:
    """Return the values of functions of row variables at states, each function by its root.

    Parameters
    ----------
    diagram
        The functions.
    numbering
        The states.
    states, roots
        Shape (points,): the state, and the node that the function begins with.

    Raises
    ------
    InvalidModelError
        A function depends on a variable that is not a row's.
    """
    host = None if kernels_ready() else host_loops.registered()
    if host is not None and len(states) >= HOST_POINTS:
        found = host.points(diagram, numbering, states, roots)
        if found is not None:
            return found
    if _repays_numba(len(states)):
        from engines.cpu import diagrams

        return diagrams.read_points(diagram, numbering, states, roots)
    nodes = np.asarray(roots)
    places = np.full(len(nodes), numbering.root)
    left = np.asarray(states, dtype=np.int64)
    for variable in numbering.rows:
        lower = numbering.low_counts[places]
        upper = left >= lower
        left = left - np.where(upper, lower, 0)
        below = np.where(upper, diagram.high[nodes], diagram.low[nodes])
        nodes = np.where(diagram.variables[nodes] == variable, below, nodes)
        places = np.where(upper, numbering.high[places], numbering.low[places])
    tested = diagram.variables[nodes]
    wrong = tested != TERMINAL
    if wrong.any():
        raise foreign_variable(diagram, int(nodes[wrong.argmax()]), "row or choice variables")
    return diagram.values[nodes]


def _repays_numba(points: int) -> bool:
    return points >= (NUMBA_POINTS_IF_READY if kernels_ready() else NUMBA_POINTS)
