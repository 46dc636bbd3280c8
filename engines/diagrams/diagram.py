"""Decision diagrams as arrays, and the numbering of the states that they speak of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray
from engines.errors import InvalidModelError

TERMINAL = 2**31 - 1
"""The variable of a terminal: below all others."""

ZERO = 0
"""The number of the terminal 0, which every diagram has."""

NO_STATES = -1
"""Where a numbering has no node, because no state lies there."""


@dataclass(frozen=True)
class Diagram:
    """A multi-terminal binary decision diagram: a function of Boolean variables.

    Parameters
    ----------
    variables
        Shape (nodes,), int32: the variable that a node tests; children test larger ones, terminals
        have `TERMINAL`. A variable that a path leaves out does not matter there.
    low, high
        Shape (nodes,), int32: the child where the variable is 0, and where it is 1; a terminal's
        are itself.
    values
        Shape (nodes,), float64: the value of a terminal; 0 elsewhere.
    root
        The node that the function begins with. Node `ZERO` is the terminal 0.
    """

    variables: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    values: FloatArray
    root: int

    @property
    def num_nodes(self) -> int:
        """Number of nodes, terminals included."""
        return len(self.variables)

    def check(self) -> Diagram:
        """Return the diagram itself if it keeps the rules.

        Raises
        ------
        InvalidModelError
            Naming the first node that breaks one.
        """
        size = self.num_nodes
        if size == 0 or not 0 <= self.root < size:
            raise InvalidModelError(f"a diagram of {size} nodes has no root {self.root}")
        if self.variables[ZERO] != TERMINAL or self.values[ZERO] != 0.0:
            raise InvalidModelError(f"node {ZERO} of a diagram is not the terminal 0")
        for child in (self.low, self.high):
            outside = (child < 0) | (child >= size)
            if outside.any():
                node = int(outside.argmax())
                raise InvalidModelError(f"node {node} of a diagram has no child {child[node]}")
            wrong = (self.variables != TERMINAL) & (self.variables[child] <= self.variables)
            if wrong.any():
                raise InvalidModelError(
                    f"node {int(wrong.argmax())} of a diagram tests a variable that is not above "
                    "its child's"
                )
        return self


@dataclass(frozen=True)
class StateNumbering:
    """Which assignments of the state variables are states, and their numbers.

    States are numbered in the order of their assignments, the first variable counting most. The
    diagram that holds this is the offset-labelled one of Parker's thesis (2002, section 6.3); it
    has a node on every level of every path, so that the k-th step decides the k-th variable.

    Parameters
    ----------
    low, high
        Shape (nodes,), int32: the node below where the variable is 0, and where it is 1;
        `NO_STATES` where no state lies below, and below the last level.
    low_counts
        Shape (nodes,), int64: number of states below `low`.
    counts
        Shape (nodes,), int64: number of states below the node.
    root
        The node that decides the first variable.
    rows, columns
        Shape (levels,), int32, ascending: a diagram's variables that stand for the state variables,
        of the state that a transition starts in and of the one that it leads to.
    """

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    low_counts: NDArray[np.int64]
    counts: NDArray[np.int64]
    root: int
    rows: NDArray[np.int32]
    columns: NDArray[np.int32]

    @property
    def num_states(self) -> int:
        """Number of states."""
        return int(self.counts[self.root])

    @property
    def num_levels(self) -> int:
        """Number of state variables."""
        return len(self.rows)

    def transposed(self) -> StateNumbering:
        """Return the numbering under which a matrix's diagram stands for its transpose."""
        return replace(self, rows=self.columns, columns=self.rows)
