"""Components by the textbook: what the 2014 paper compares its GPU with, on one core.

Strong components by one depth-first search (Tarjan 1972); maximal end components by the basic
algorithm of the paper's section 2.3 (de Alfaro 1997; Baier, Katoen 2008, chapter 10): strong
components, the choices that leave theirs, the states that have none left with those that cannot
avoid them, and again until nothing leaves. Nothing here is arranged for a cache or cleverly left
out: our own engine for the CPU is `engines/cpu/graph.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from engines.model import ExplicitModel

OPEN = -1
"""The label of a state that is in no component yet."""

SETTLED = -2
"""The label of a state that the search is to leave out."""

NO_STATE = -1
"""The column of an entry that is no edge any more."""


@njit(cache=True)
def tarjan(firsts: Any, columns: Any, labels: Any, scratch: Any, edge_at: Any) -> int:
    """Find the strong components of the open states; return how many there are.

    Parameters
    ----------
    firsts
        Shape (states + 1,): the edges of a state are ``columns[firsts[s]:firsts[s + 1]]``.
    columns
        Shape (edges,): where each leads, or `NO_STATE`; from open states only to open ones.
    labels
        Shape (states,): the components of open states are put there, from 0 on.
    scratch
        Shape (4, states), int32.
    edge_at
        Shape (states,), int64: more of it.
    """
    index, low, stack, path = scratch[0], scratch[1], scratch[2], scratch[3]
    index[:] = 0
    visited, waiting, count = 0, 0, 0
    for root in range(len(labels)):
        if labels[root] != OPEN or index[root] > 0:
            continue
        depth = 0
        entered = root
        while True:
            if entered != NO_STATE:
                visited += 1
                index[entered] = low[entered] = visited
                stack[waiting] = path[depth] = entered
                edge_at[depth] = firsts[entered]
                waiting += 1
                entered = NO_STATE
            state = path[depth]
            edge = edge_at[depth]
            if edge < firsts[state + 1]:
                edge_at[depth] = edge + 1
                target = columns[edge]
                if target == NO_STATE:
                    continue
                if index[target] == 0:
                    depth += 1
                    entered = target
                elif labels[target] == OPEN:
                    low[state] = min(low[state], index[target])
                continue
            if low[state] == index[state]:
                while True:
                    waiting -= 1
                    labels[stack[waiting]] = count
                    if stack[waiting] == state:
                        break
                count += 1
            if depth == 0:
                break
            depth -= 1
            parent = path[depth]
            low[parent] = min(low[parent], low[state])
    return count


@njit(cache=True)
def rows_into(rows: Any, columns: Any, num_states: int) -> Any:
    """Return the rows that have an edge to each state: their places by state, and the rows."""
    firsts = np.zeros(num_states + 1, np.int64)
    for column in columns:
        firsts[column + 1] += 1
    for state in range(num_states):
        firsts[state + 1] += firsts[state]
    free = firsts[:-1].copy()
    into = np.empty(len(columns), np.int32)
    for row in range(len(rows) - 1):
        for edge in range(rows[row], rows[row + 1]):
            into[free[columns[edge]]] = row
            free[columns[edge]] += 1
    return firsts, into


@njit(cache=True)
def lose(row: int, rows: Any, columns: Any, usable: Any) -> None:
    """Take a choice away, with its edges."""
    usable[row] = False
    for edge in range(rows[row], rows[row + 1]):
        columns[edge] = NO_STATE


@njit(cache=True)
def end_components(
    groups: Any, rows: Any, firsts: Any, columns: Any, into_firsts: Any, into: Any, owner: Any
) -> tuple[Any, int]:
    """Find the maximal end components; return their labels, −1 for none, and their number.

    Parameters
    ----------
    groups, rows
        Shape (states + 1,) and (choices + 1,): the choices of each state, the edges of each choice.
    firsts, columns
        As for `tarjan`; the columns are overwritten.
    into_firsts, into
        What `rows_into` returns.
    owner
        Shape (choices,): the state of each choice.
    """
    n = len(groups) - 1
    scratch = np.empty((4, n), np.int32)
    edge_at = np.empty(n, np.int64)
    labels = np.full(n, OPEN, np.int32)
    result = np.full(n, -1, np.int32)
    usable = np.ones(len(owner), np.bool_)
    remaining = np.empty(n, np.int32)
    for state in range(n):
        remaining[state] = groups[state + 1] - groups[state]
    gone = scratch[2]
    found = 0
    in_doubt = n
    while in_doubt:
        count = tarjan(firsts, columns, labels, scratch, edge_at)
        changed = np.zeros(count, np.bool_)
        removed = 0
        for row in range(len(owner)):
            state = owner[row]
            if not usable[row] or result[state] >= 0:
                continue
            for edge in range(rows[row], rows[row + 1]):
                if labels[columns[edge]] != labels[state]:
                    lose(row, rows, columns, usable)
                    changed[labels[state]] = True
                    remaining[state] -= 1
                    if remaining[state] == 0:
                        gone[removed] = state
                        removed += 1
                    break
        # Who cannot avoid a state that is gone is gone too.
        while removed:
            removed -= 1
            state = gone[removed]
            for at in range(into_firsts[state], into_firsts[state + 1]):
                row = into[at]
                if usable[row]:
                    lose(row, rows, columns, usable)
                    changed[labels[owner[row]]] = True
                    remaining[owner[row]] -= 1
                    if remaining[owner[row]] == 0:
                        gone[removed] = owner[row]
                        removed += 1
        in_doubt = 0
        new_label = np.full(count, -1, np.int32)
        for state in range(n):
            if result[state] >= 0 or remaining[state] == 0:
                labels[state] = SETTLED
            elif changed[labels[state]]:
                labels[state] = OPEN
                in_doubt += 1
            else:
                own = labels[state]
                if new_label[own] < 0:
                    new_label[own] = found
                    found += 1
                result[state] = new_label[own]
                labels[state] = SETTLED
    return result, found


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
        self._groups = model.row_group_offsets
        self._rows = matrix.row_offsets
        self._firsts = matrix.row_offsets[model.row_group_offsets]
        self._columns = matrix.columns
        self._num_states = model.num_states

    def strong_components(self) -> tuple[np.ndarray, int]:
        """Return the component of each state, and their number."""
        n = self._num_states
        labels = np.full(n, OPEN, dtype=np.int32)
        scratch = np.empty((4, n), dtype=np.int32)
        edge_at = np.empty(n, dtype=np.int64)
        return labels, int(tarjan(self._firsts, self._columns, labels, scratch, edge_at))

    def turned_round(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return what `end_components` wants prepared: copied columns, rows by target, owners."""
        lengths = np.diff(self._groups)
        owner = np.repeat(np.arange(self._num_states, dtype=np.int32), lengths)
        into_firsts, into = rows_into(self._rows, self._columns, self._num_states)
        return self._columns.copy(), into_firsts, into, owner

    def end_components(
        self, columns: np.ndarray, into_firsts: np.ndarray, into: np.ndarray, owner: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Return the maximal end component of each state, −1 for none, and their number.

        Parameters
        ----------
        columns, into_firsts, into, owner
            What `turned_round` returns; the first is overwritten.
        """
        labels, count = end_components(
            self._groups, self._rows, self._firsts, columns, into_firsts, into, owner
        )
        return labels, int(count)
