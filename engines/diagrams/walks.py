"""Matrices whose diagrams share little: expanded path by path, in hardly more than their memory.

A survey keeps every distinct block of a matrix. Where there are about as many as entries, they take
many times the matrix; then its paths are followed one by one, twice: to count the entries of each
row, and to write them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cpu import host_loops
from engines.diagrams.diagram import ZERO, Diagram, StateNumbering
from engines.diagrams.layers import check_counts, check_order, foreign_variable
from engines.diagrams.survey import Survey, survey
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, index_dtype

FEWEST_TRIPLES = 250_000
"""Up to so many distinct blocks a survey takes some 40 MB whatever is shared."""

SHARING = 32
"""With fewer entries than so many times its distinct blocks, a matrix is walked: a survey would
take more than twice the matrix beside it."""

DEEP = 64
"""From so many levels on, the passes of a survey, a fifth of a millisecond each, take longer than
the host needs to follow all paths of a small matrix."""

MOST_STEPS = 8_000_000
"""Up to so many states times levels such a matrix is small."""

ENTRIES_A_STATE = 4
"""The most entries that a small matrix has for each of its states."""


@dataclass(frozen=True)
class Walked:
    """A matrix without choices that is followed path by path.

    Parameters
    ----------
    diagram
        The function.
    numbering
        The states.
    row_entries
        Shape (states,), int32: the number of entries of each row.
    matrix
        The matrix itself, where it has been found already.
    """

    diagram: Diagram
    numbering: StateNumbering
    row_entries: NDArray[np.int32]
    matrix: CsrMatrix | None = None

    @cached_property
    def num_entries(self) -> int:
        """Number of entries."""
        return int(self.row_entries.sum(dtype=np.int64))

    @property
    def expanded_bytes(self) -> int:
        """The most bytes that the expansion takes at once, result included."""
        states = self.numbering.num_states
        offset = np.dtype(index_dtype(self.num_entries)).itemsize
        return 12 * self.num_entries + (2 * offset + 4) * (states + 1)

    def expanded(self) -> CsrMatrix:
        """Return the matrix by rows, columns ascending in each.

        Raises
        ------
        InvalidModelError
            The function depends on a variable that is neither of a row nor of a column.
        """
        if self.matrix is not None:
            return self.matrix
        size, entries = self.numbering.num_states, self.num_entries
        offsets = np.zeros(size + 1, dtype=index_dtype(entries))
        np.cumsum(self.row_entries, out=offsets[1:])
        columns, values = np.empty(entries, dtype=np.int32), np.empty(entries)
        found = _walk(
            *(self.diagram, self.numbering, entries, offsets[:-1].copy()), columns, values
        )
        assert found == entries, "a diagram has changed"
        return CsrMatrix(offsets, columns, values, size)


class _LittleSharedError(Exception):
    def __init__(self, matrix: Walked) -> None:
        super().__init__()
        self.matrix = matrix


def surveyed_or_walked(diagram: Diagram, numbering: StateNumbering) -> Survey | Walked:
    """Survey a matrix without choices, unless it shares too little, or is too small, to repay that.

    Parameters
    ----------
    diagram
        A function of row and column variables.
    numbering
        The states.

    Returns
    -------
    Whichever of the two tells how many entries there are, and is the way to expand them.

    Raises
    ------
    InvalidModelError
        The function depends on a variable that is neither of a row nor of a column.
    UnsupportedError
        The variables of one state variable do not stand next to each other in the diagram.
    """
    followed = _followed_by_host(diagram, numbering)
    if followed is not None:
        return followed
    next_look = FEWEST_TRIPLES

    def look(triples: int) -> None:
        nonlocal next_look
        if triples < next_look:
            return
        next_look = 2 * triples
        found = walked_up_to(SHARING * triples, diagram, numbering)
        if found is not None:
            raise _LittleSharedError(found)

    try:
        return survey(diagram, numbering, look=look)
    except _LittleSharedError as found:
        return found.matrix


def _followed_by_host(diagram: Diagram, numbering: StateNumbering) -> Walked | None:
    """Return a small matrix of a deep diagram, if the host follows its paths."""
    host, levels, states = host_loops.registered(), numbering.num_levels, numbering.num_states
    if host is None or levels < DEEP or not 0 < states <= MOST_STEPS // levels:
        return None
    check_order(numbering)
    check_counts(numbering)
    if diagram.root == ZERO:
        return None
    matrix = host.expanded(diagram, numbering, ENTRIES_A_STATE * states)
    if matrix is None:
        return None
    return Walked(diagram, numbering, np.diff(matrix.row_offsets).astype(np.int32), matrix)


def walked_up_to(most: int, diagram: Diagram, numbering: StateNumbering) -> Walked | None:
    """Return a matrix whose entries have been counted, or None if there are more than so many.

    Parameters
    ----------
    most
        When to stop counting.
    diagram, numbering
        As in `surveyed_or_walked`.

    Raises
    ------
    InvalidModelError, UnsupportedError
        As in `surveyed_or_walked`.
    """
    check_order(numbering)
    check_counts(numbering)
    counts = np.zeros(numbering.num_states, dtype=np.int32)
    found = _walk(diagram, numbering, most, counts, np.empty(0, dtype=np.int32), np.empty(0))
    return Walked(diagram, numbering, counts) if found <= most else None


def _walk(
    diagram: Diagram,
    numbering: StateNumbering,
    most: int,
    places: IndexArray,
    columns: IndexArray,
    values: FloatArray,
) -> int:
    """Count the entries of each row into `places`; if columns are given, write them from there."""
    from engines.cpu import diagram_walk_kernels as kernels

    if numbering.num_states == 0 or diagram.root == ZERO:
        return 0
    walk: Any = kernels.walk
    found, strange = walk(
        *(diagram.variables, diagram.low, diagram.high, diagram.values, diagram.root),
        *(numbering.low, numbering.high, numbering.low_counts, numbering.root),
        *(numbering.rows, numbering.columns, most, len(columns) > 0, places, columns, values),
    )
    if strange >= 0:
        raise foreign_variable(diagram, int(strange), "row or column variables")
    return int(found)
