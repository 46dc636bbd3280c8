"""Components by the textbook: what the 2014 paper compares its GPU with, on one core.

Strong components by one depth-first search (Tarjan 1972); maximal end components by the basic
algorithm of the paper's section 2.3 (de Alfaro 1997; Baier, Katoen 2008, chapter 10): strong
components, the choices that leave theirs, the states that have none left with those that cannot
avoid them, and again until nothing leaves. Nothing here is arranged for a cache or cleverly left
out: our own engine for the CPU is `engines/host/graph.py`.
"""

from __future__ import annotations

from ctypes import c_int32, c_int64
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.host.compiled.library import INDICES, Array, Function
from engines.model.explicit import ExplicitModel

States = NDArray[np.int32]
Places = NDArray[np.int64]

_STATES = Array(np.int32)
_STRONG = Function("pg_textbook_components", c_int32, c_int32, INDICES, _STATES, _STATES)
_ROWS_INTO = Function(
    "pg_textbook_rows_into", None, *(c_int32, c_int64, INDICES, _STATES, INDICES, _STATES)
)
_END = Function(
    "pg_textbook_end_components",
    *(c_int32, c_int32, INDICES, INDICES, INDICES),
    *(_STATES, INDICES, _STATES, _STATES, _STATES),
)


class TurnedRound(NamedTuple):
    """What the search for end components wants prepared.

    Parameters
    ----------
    columns
        A copy of the columns, which it overwrites, shape (entries,).
    into_firsts, into
        The rows that have an edge to each state: those of state s from ``into_firsts[s]`` on.
    owner
        The state of each row, shape (rows,).
    """

    columns: States
    into_firsts: Places
    into: States
    owner: States


class Textbook:
    """A model's graph, and its components by the textbook.

    Parameters
    ----------
    model
        An MDP; only where its edges lead is looked at.
    """

    def __init__(self, model: ExplicitModel) -> None:
        matrix = model.matrix
        assert model.row_group_offsets is not None
        self._groups: Places = np.ascontiguousarray(model.row_group_offsets, dtype=np.int64)
        self._rows: Places = np.ascontiguousarray(matrix.row_offsets, dtype=np.int64)
        self._firsts: Places = self._rows[self._groups]
        self._columns: States = np.ascontiguousarray(matrix.columns, dtype=np.int32)
        self._num_states = model.num_states

    def strong_components(self) -> tuple[States, int]:
        """Return the component of each state, and their number."""
        labels = np.empty(self._num_states, dtype=np.int32)
        return labels, int(_STRONG(self._num_states, self._firsts, self._columns, labels))

    def turned_round(self) -> TurnedRound:
        """Return what `end_components` wants prepared."""
        lengths = np.diff(self._groups)
        owner = np.repeat(np.arange(self._num_states, dtype=np.int32), lengths)
        into_firsts, into = rows_into(self._rows, self._columns, self._num_states)
        return TurnedRound(self._columns.copy(), into_firsts, into, owner)

    def end_components(self, turned: TurnedRound) -> tuple[States, int]:
        """Return the maximal end component of each state, −1 for none, and their number.

        Parameters
        ----------
        turned
            What `turned_round` returns; its columns are overwritten.
        """
        labels = np.empty(self._num_states, dtype=np.int32)
        columns, into_firsts, into, owner = turned
        graph = (self._groups, self._rows, self._firsts, columns, into_firsts, into, owner, labels)
        return labels, int(_END(self._num_states, *graph))


def rows_into(offsets: Places, columns: States, states: int) -> tuple[Places, States]:
    """Return the rows that have an edge to each state, ascending.

    Parameters
    ----------
    offsets, columns
        The rows, shape (rows + 1,), and where their edges lead, shape (entries,).
    states
        How many states there are.

    Returns
    -------
    Where the rows of each state begin, shape (states + 1,), and the rows, shape (entries,).
    """
    firsts = np.empty(states + 1, dtype=np.int64)
    into = np.empty(len(columns), dtype=np.int32)
    _ROWS_INTO(states, len(offsets) - 1, offsets, columns, firsts, into)
    return firsts, into


def numbered(labels: States, count: int) -> States:
    """Return labels of 0 to `count` − 1, numbered by smallest states; others stay −1.

    Parameters
    ----------
    labels
        Shape (states,).
    count
        How many there are.
    """
    first = np.empty(count + 1, dtype=np.int64)
    # The last of several assignments stays: that of the smallest state. Place −1 takes the others.
    first[labels[::-1]] = np.arange(len(labels) - 1, -1, -1)
    names = np.empty(count + 1, dtype=np.int32)
    names[np.argsort(first[:count])] = np.arange(count, dtype=np.int32)
    names[count] = -1
    return np.asarray(names[labels])
