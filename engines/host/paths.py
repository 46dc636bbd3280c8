"""The paths of a matrix's diagram followed one by one, and values of diagrams at states, in C++."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int32, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.diagrams.diagram import NO_STATES, ZERO, Diagram, StateNumbering
from engines.diagrams.layers import check_counts, check_order, foreign_variable
from engines.host.blocks import (
    ChoiceRows,
    MatrixArrays,
    added_up,
    addresses,
    check_range,
    numbers_of,
)
from engines.host.compiled.library import (
    DOUBLES,
    INDICES,
    MASKS,
    NUMBERS,
    Array,
    Function,
    Structure,
    doubles,
    indices,
)
from engines.host.compiled.shares import even_shares
from engines.model.csr import CsrMatrix

STEPS_AT_ONCE = 10_000_000
"""So many steps along paths, some 0.1 s, are made before signals are looked at."""

_EITHER = Array(np.int32, np.int64)


class HostDiagram(Structure):
    """`PgDiagram` of src/paths.hpp."""

    _fields_ = (
        *((name, c_void_p) for name in ("variables", "low", "high", "values")),
        *((name, c_void_p) for name in ("numbering_low", "numbering_high", "low_counts")),
        *((name, c_void_p) for name in ("rows", "columns")),
        *(("numbering_root", c_int64), ("levels", c_int64)),
    )

    @classmethod
    def of(cls, diagram: Diagram, numbering: StateNumbering) -> HostDiagram:
        """Return a diagram and a numbering as the library reads them; their arrays are shared.

        Parameters
        ----------
        diagram, numbering
            The function, and the states, of which there must be some.

        Raises
        ------
        InvalidModelError
            The numbering miscounts its states.
        ValueError
            A child is none of the nodes.
        """
        check_counts(numbering)
        for children in (diagram.low, diagram.high):
            check_range(children, 0, diagram.num_nodes)
        for children in (numbering.low, numbering.high):
            check_range(children, NO_STATES, len(numbering.counts))
        arrays: tuple[NDArray[Any], ...] = (
            *map(numbers_of, (diagram.variables, diagram.low, diagram.high)),
            doubles(diagram.values),
            *map(numbers_of, (numbering.low, numbering.high)),
            indices(numbering.low_counts),
            *map(numbers_of, (numbering.rows, numbering.columns)),
        )
        made = cls(*addresses(arrays), numbering.root, numbering.num_levels)
        made._kept = arrays
        return made


class HostWalk(Structure):
    """`PgWalk` of src/paths.hpp."""

    _fields_ = (
        ("stack", c_void_p),
        *((name, c_int64) for name in ("height", "choice", "found", "strange")),
    )

    found: int
    strange: int

    @classmethod
    def begun(cls, levels: int) -> HostWalk:
        """Return a walk that has not made a step.

        Parameters
        ----------
        levels
            How many levels the diagram has.
        """
        stack = np.empty((4 * levels + 4, 4), dtype=np.int64)
        made = cls(stack.ctypes.data, 0, -1, 0, -1)
        made._kept = (stack,)
        return made


_PATHS = (HostDiagram, NUMBERS, c_int64, HostWalk, c_int64)
_COUNT_PATHS = Function("pg_count_paths", c_int32, *_PATHS, NUMBERS, NUMBERS, NUMBERS)
_FILL_PATHS = Function(
    "pg_fill_paths",
    c_int32,
    *(*_PATHS, c_int32, _EITHER, NUMBERS, DOUBLES),
    *(NUMBERS, INDICES, _EITHER, NUMBERS),
)
_READ_POINTS = Function(
    "pg_read_points",
    c_int64,
    *(HostDiagram, INDICES, c_int64, c_int32, INDICES, NUMBERS, DOUBLES),
)
_EXPAND_VECTOR = Function(
    "pg_expand_vector", c_int64, HostDiagram, c_int32, INDICES, DOUBLES, MASKS
)


@dataclass(frozen=True)
class CountedPaths:
    """The paths of a matrix that are not zero, one an entry, counted by states.

    Parameters
    ----------
    diagram, numbering
        The function, and the states.
    roots
        Shape (roots,), int32: the nodes that the matrix, or each of an MDP's choices, begins with.
    entries
        Shape (states,), int32: the number of entries of each state.
    rows
        Shape (states,), int32: the number of choices of each; None for a matrix without choices.
    num_entries
        Number of entries.
    """

    diagram: Diagram
    numbering: StateNumbering
    roots: NDArray[np.int32]
    entries: NDArray[np.int32]
    rows: NDArray[np.int32] | None
    num_entries: int

    def matrix(self) -> CsrMatrix:
        """Return a matrix without choices by rows, columns ascending in each."""
        assert self.rows is None, "a matrix with choices"
        made = MatrixArrays.of(added_up(self.entries))
        self._fill(made.offsets[:-1].copy(), made, None, None, None)
        return made.matrix(self.numbering.num_states)

    def choices(self) -> ChoiceRows:
        """Return the choices of all states, one a row."""
        assert self.rows is not None, "a matrix without choices"
        groups, next_entries = added_up(self.rows), added_up(self.entries)[:-1]
        made = MatrixArrays.empty(int(groups[-1]), self.num_entries)
        numbers = np.empty(int(groups[-1]), dtype=np.int32)
        latest = np.full(len(self.rows), -1, dtype=np.int32)
        self._fill(next_entries, made, latest, groups[:-1].astype(np.int64), numbers)
        return made.matrix(self.numbering.num_states), groups, numbers

    def _fill(
        self,
        next_entries: IndexArray,
        made: MatrixArrays,
        latest: NDArray[np.int32] | None,
        next_rows: NDArray[np.int64] | None,
        numbers: NDArray[np.int32] | None,
    ) -> None:
        if self.num_entries == 0:
            return
        given = HostDiagram.of(self.diagram, self.numbering)
        walk = HostWalk.begun(self.numbering.num_levels)
        offsets = None if next_rows is None else made.offsets
        entries = (made.wide, next_entries, made.columns, made.values)
        words = (STEPS_AT_ONCE, *entries, latest, next_rows, offsets, numbers)
        while not _FILL_PATHS(given, self.roots, len(self.roots), walk, *words):
            pass


def count_paths(
    diagram: Diagram,
    numbering: StateNumbering,
    roots: Sequence[int] | IndexArray | None = None,
    *,
    most_entries: int | None = None,
    most_steps: int | None = None,
) -> CountedPaths | None:
    """Follow all paths of a matrix that are not zero; None where there are more than may be.

    Parameters
    ----------
    diagram
        A function of row and column variables.
    numbering
        The states, at most 2³¹ − 1.
    roots
        Nodes of the diagram that an MDP's choices begin with; None for the diagram's own root.
    most_entries
        How many entries there may be; None for any number.
    most_steps
        How many nodes of paths may be met, several for each entry; None for any number.

    Raises
    ------
    InvalidModelError
        The function depends on a variable that is neither of a row nor of a column.
    UnsupportedError
        The variables of one state variable do not stand next to each other in the diagram.
    """
    check_order(numbering)
    begins = np.array([diagram.root] if roots is None else roots, dtype=np.int32)
    check_range(begins, 0, diagram.num_nodes)
    states = numbering.num_states
    entries = np.zeros(states, dtype=np.int32)
    rows = None if roots is None else np.zeros(states, dtype=np.int32)
    if states == 0 or not (begins != ZERO).any():
        check_counts(numbering)
        return CountedPaths(diagram, numbering, begins, entries, rows, 0)
    latest = None if rows is None else np.full(states, -1, dtype=np.int32)
    given, walk = HostDiagram.of(diagram, numbering), HostWalk.begun(numbering.num_levels)
    made, through = 0, False
    while not through:
        now = STEPS_AT_ONCE if most_steps is None else min(STEPS_AT_ONCE, most_steps - made)
        through = bool(_COUNT_PATHS(given, begins, len(begins), walk, now, entries, rows, latest))
        made += now
        if most_entries is not None and walk.found > most_entries:
            return None
        if not through and made == most_steps:
            return None
    if walk.strange >= 0:
        raise foreign_variable(diagram, walk.strange, "row, column or choice variables")
    return CountedPaths(diagram, numbering, begins, entries, rows, walk.found)


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
    ValueError
        There is no such state or node.
    """
    results: FloatArray = np.empty(len(states))
    if len(roots) != len(states):
        raise ValueError(f"{len(states)} states, but {len(roots)} roots")
    if not len(states):
        return results
    check_range(states, 0, numbering.num_states)
    check_range(roots, 0, diagram.num_nodes)
    shares = even_shares(len(states), len(states) * numbering.num_levels)
    words = (indices(states), numbers_of(roots), results)
    strange = int(_READ_POINTS(HostDiagram.of(diagram, numbering), *shares, *words))
    if strange >= 0:
        raise foreign_variable(diagram, strange, "row or choice variables")
    return results


def expand_vector(diagram: Diagram, numbering: StateNumbering) -> FloatArray:
    """Return the value of each state, shape (states,).

    Parameters
    ----------
    diagram
        A function of row variables.
    numbering
        The states.

    Raises
    ------
    InvalidModelError
        The function depends on another variable.
    MemoryError
        There is no room to note what is written already.
    """
    values: FloatArray = np.zeros(numbering.num_states)
    _expand(diagram, numbering, values, None)
    return values


def expand_set(diagram: Diagram, numbering: StateNumbering) -> MaskArray:
    """Return which states a function is not 0 in, shape (states,).

    Parameters
    ----------
    diagram
        A function of row variables.
    numbering
        The states.

    Raises
    ------
    InvalidModelError
        The function depends on another variable.
    MemoryError
        There is no room to note what is written already.
    """
    members: MaskArray = np.zeros(numbering.num_states, dtype=np.bool_)
    _expand(diagram, numbering, None, members)
    return members


def _expand(
    diagram: Diagram,
    numbering: StateNumbering,
    values: FloatArray | None,
    members: MaskArray | None,
) -> None:
    if numbering.num_states == 0:
        return
    check_range(np.array([diagram.root]), 0, diagram.num_nodes)
    given = HostDiagram.of(diagram, numbering)
    words = (diagram.root, indices(numbering.counts), values, members)
    strange = int(_EXPAND_VECTOR(given, *words))
    if strange == -2:
        raise MemoryError(f"expanding a function of {numbering.num_states} states: out of memory")
    if strange >= 0:
        raise foreign_variable(diagram, strange, "row or choice variables")
