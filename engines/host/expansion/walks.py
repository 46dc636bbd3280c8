"""Matrices expanded path by path: small ones, and those whose diagrams share little.

A survey keeps every distinct block of a matrix, in passes over its levels. Where a matrix is small,
they take longer than its paths; where there are about as many blocks as entries, they take many
times its memory. Then the paths are followed one by one, twice: to count the entries of each row,
and to write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engines.arrays import INT32_MAX, IndexArray, index_dtype
from engines.diagrams.diagram import Diagram, StateNumbering
from engines.diagrams.survey import Survey, survey
from engines.host.blocks import ChoiceRows
from engines.host.paths import CountedPaths, count_paths
from engines.model.csr import CsrMatrix

WALKED_STEPS_A_LEVEL = 15_000
"""A matrix whose paths have no more nodes for each level is walked, 0.4 ms a level: the passes of a
survey, and of the hybrid matrix after it, take as long or longer."""

FEWEST_TRIPLES = 250_000
"""Up to so many distinct blocks a survey takes some 40 MB whatever is shared."""


@dataclass(frozen=True)
class Walked:
    """A matrix that is followed path by path.

    Parameters
    ----------
    paths
        Its paths, which have been counted.
    """

    paths: CountedPaths

    @property
    def numbering(self) -> StateNumbering:
        """The states."""
        return self.paths.numbering

    @property
    def num_entries(self) -> int:
        """Number of entries, over all choices."""
        return self.paths.num_entries

    @property
    def with_choices(self) -> bool:
        """Whether the rows are an MDP's choices."""
        return self.paths.rows is not None

    @property
    def expanded_bytes(self) -> int:
        """The most bytes that the expansion takes at once, result included."""
        states = self.numbering.num_states
        offset = np.dtype(index_dtype(self.num_entries)).itemsize
        counts = self.paths.rows
        if counts is None:
            return 12 * self.num_entries + (2 * offset + 4) * (states + 1)
        rows = int(counts.sum(dtype=np.int64))
        each = 2 * offset + np.dtype(index_dtype(rows)).itemsize + 20
        return 12 * self.num_entries + (offset + 4) * (rows + 1) + each * (states + 1)

    def expanded(self) -> CsrMatrix:
        """Return a matrix without choices by rows, columns ascending in each."""
        return self.paths.matrix()

    def expanded_choices(self) -> ChoiceRows:
        """Return the choices of all states, one a row."""
        return self.paths.choices()


class _LittleSharedError(Exception):
    def __init__(self, matrix: Walked) -> None:
        super().__init__()
        self.matrix = matrix


def surveyed_or_walked(
    diagram: Diagram,
    numbering: StateNumbering,
    roots: Sequence[int] | IndexArray | None = None,
) -> Survey | Walked:
    """Survey a matrix, unless it shares too little, or is too small, to repay that.

    Parameters
    ----------
    diagram
        A function of row and column variables.
    numbering
        The states.
    roots
        Nodes of the diagram that an MDP's choices begin with; None for the diagram's own root.

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
    steps = WALKED_STEPS_A_LEVEL * max(numbering.num_levels, 1)
    # A state without an entry is rare: of more states there are more steps.
    if numbering.num_states <= steps:
        small = count_paths(diagram, numbering, roots, most_steps=steps)
        if small is not None:
            return Walked(small)
    next_look = FEWEST_TRIPLES

    def look(triples: int) -> None:
        nonlocal next_look
        if triples < next_look or numbering.num_states > INT32_MAX:
            return
        next_look = 2 * triples
        # Where blocks are shared less often, a survey would take more than twice the matrix.
        sharing = 32
        found = walked_up_to(sharing * triples, diagram, numbering, roots)
        if found is not None:
            raise _LittleSharedError(found)

    try:
        return survey(diagram, numbering, roots, look=look)
    except _LittleSharedError as found:
        return found.matrix


def walked_up_to(
    most: int,
    diagram: Diagram,
    numbering: StateNumbering,
    roots: Sequence[int] | IndexArray | None = None,
) -> Walked | None:
    """Return a matrix whose entries have been counted, or None if there are more than so many.

    Parameters
    ----------
    most
        How many entries it may have.
    diagram, numbering, roots
        As in `surveyed_or_walked`.

    Raises
    ------
    InvalidModelError, UnsupportedError
        As in `surveyed_or_walked`.
    """
    counted = count_paths(diagram, numbering, roots, most_entries=most)
    return None if counted is None else Walked(counted)
