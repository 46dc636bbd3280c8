"""The loops behind upper bounds of expected rewards, by the compiled library."""

from __future__ import annotations

from ctypes import c_int32, c_int64

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.host.compiled.library import DOUBLES, INDICES, MASKS, Function, HostMatrix, indices
from engines.model.csr import CsrMatrix

_DIJKSTRA = Function(
    "pg_dijkstra_sweep",
    c_int32,
    *(HostMatrix, INDICES, c_int64, MASKS),
    *(DOUBLES, DOUBLES, INDICES, DOUBLES, DOUBLES),
)
_NO_RETURN = Function(
    "pg_probability_of_no_return",
    c_int32,
    *(HostMatrix, INDICES, MASKS, INDICES),
    *(HostMatrix, INDICES, INDICES, INDICES, DOUBLES),
)


def dijkstra_sweep(
    into: CsrMatrix, owner: IndexArray, goal: MaskArray, rewards: FloatArray
) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Settle states in the order of the probability, then the cost, of getting to the goal.

    Parameters
    ----------
    into
        The transposed matrix, shape (states, rows).
    owner
        Shape (rows,): the state of each row.
    goal
        Shape (states,): states without a cost.
    rewards
        Shape (rows,).

    Returns
    -------
    What a state's chosen row knew of getting to the goal when the state was settled: its
    probability and its cost, shape (states,); the chosen row, shape (states,), −1 at the goal and
    where none leads to it.

    Raises
    ------
    ValueError
        If a shape or a state does not fit the matrix.
    MemoryError
        If there is no room for the queue.

    Notes
    -----
    McMahan, Likhachev and Gordon (2005), Bounded Real-Time Dynamic Programming, Dijkstra Sweep for
    Monotone Pessimistic Initialization.
    """
    size, rows = _checked(into, owner, goal)
    if len(rewards) != rows:
        raise ValueError(f"{rows} rows, but {len(rewards)} rewards")
    reached, cost = goal.astype(np.float64), np.zeros(size)
    chosen = np.full(size, -1, dtype=np.int64)
    row_reached, row_cost = np.zeros(rows), np.array(rewards, dtype=np.float64)
    given = (HostMatrix.of(into), indices(owner), rows, np.ascontiguousarray(goal))
    if _DIJKSTRA(*given, reached, cost, chosen, row_reached, row_cost) < 0:
        raise MemoryError("a Dijkstra sweep: out of memory")
    return reached, cost, chosen


def probability_of_no_return(
    into: CsrMatrix,
    owner: IndexArray,
    goal: MaskArray,
    component: IndexArray,
    matrix: CsrMatrix,
    groups: IndexArray,
) -> FloatArray:
    """Bound from below the probability of never coming back to a state, under any strategy.

    Parameters
    ----------
    into
        The transposed matrix, shape (states, rows).
    owner
        Shape (rows,): the state of each row; the rows of one lie side by side.
    goal
        Shape (states,): the states that are left for good.
    component
        Shape (states,): the strongly connected component of each state; −1 at the goal.
    matrix
        Shape (rows, states).
    groups
        Where the rows of each state begin that has some, and the end, shape (such states + 1,).

    Returns
    -------
    Shape (states,); 0 at the goal and where some row never leads there for sure.

    Raises
    ------
    ValueError
        If a shape or a state does not fit the matrix.
    MemoryError
        If there is no room for the search.

    Notes
    -----
    Baier, Klein, Leuschner, Parker and Wunderlich (2017), Ensuring the Reliability of Your Model
    Checker: Interval Iteration for Markov Decision Processes, section 3, variant 2.
    """
    size, rows = _checked(into, owner, goal)
    shapes = (len(component), matrix.num_rows, matrix.num_columns, int(groups[-1]))
    if shapes != (size, rows, size, rows) or groups[0] != 0 or (np.diff(groups) <= 0).any():
        raise ValueError(f"shapes of {shapes} where {(size, rows, size, rows)} are wanted")
    group_of = np.full(size, -1, dtype=np.int64)
    group_of[owner[groups[:-1]]] = np.arange(len(groups) - 1)
    level, never = np.where(goal, 0, -1).astype(np.int64), np.zeros(size)
    graph = (HostMatrix.of(into), indices(owner), np.ascontiguousarray(goal), indices(component))
    rest = (HostMatrix.of(matrix), indices(groups), group_of, level, never)
    if _NO_RETURN(*graph, *rest) < 0:
        raise MemoryError("a search for layers: out of memory")
    return never


def _checked(into: CsrMatrix, owner: IndexArray, goal: MaskArray) -> tuple[int, int]:
    """Return how many states and rows there are, or raise ValueError."""
    size, rows = into.num_rows, into.num_columns
    if len(goal) != size or len(owner) != rows:
        raise ValueError(f"{size} states and {rows} rows, but {len(goal)} and {len(owner)}")
    if rows and not 0 <= owner.min() <= owner.max() < size:
        raise ValueError(f"rows of states from {owner.min()} to {owner.max()}, of {size}")
    return size, rows
