"""States and choices in PRISM's order.

PRISM numbers states by the variables' values, the first variable counting most, false before true,
and lists a state's choices by action: those without one first. Storm numbers states as it finds
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bridge.model import StateVector
from engines.arrays import FloatArray, IndexArray, index_dtype
from engines.model.csr import CsrMatrix

_SAME_RATE = 4 * float(np.finfo(np.float64).eps)


def state_order(variables: Mapping[str, StateVector], num_states: int) -> IndexArray:
    """Return the states sorted by the variables' values, shape (states,).

    Parameters
    ----------
    variables
        The values of each variable, whole numbers or truth values, the most important one first.
    num_states
        How many states there are.
    """
    keys = [np.zeros(num_states, np.int64)]
    span = 1
    for column in variables.values():
        whole = column.astype(np.int64)
        lowest = int(whole.min())
        width = int(whole.max()) - lowest + 1
        # Keys are numbers of 64 bits.
        if span * width > 2**62:
            keys.append(whole - lowest)
            span = width
        else:
            keys[-1] = keys[-1] * width + (whole - lowest)
            span *= width
    order = np.lexsort(keys[::-1])
    return order.astype(index_dtype(num_states), copy=False)


def inverse(order: IndexArray) -> IndexArray:
    """Return for each old place the new one, given for each new place the old one."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order), dtype=order.dtype)
    return places


def choice_order(
    groups: IndexArray, states: IndexArray, actions: IndexArray, ranks: Sequence[int]
) -> tuple[IndexArray, IndexArray]:
    """Return the choices in the order of their states, and in a state by action.

    Parameters
    ----------
    groups
        Shape (states + 1,): where each state's choices start.
    states
        Shape (states,): the states in their new order.
    actions
        Shape (choices,): the action of each choice.
    ranks
        The place of each action in the order wanted. Choices of one action keep their order.

    Returns
    -------
    order
        Shape (choices,): the choices in their new order.
    new_groups
        Shape (states + 1,): where each state's choices start then.
    """
    sizes = np.diff(groups)
    state_of_choice = np.repeat(inverse(states), sizes)
    order = np.lexsort((np.asarray(ranks)[actions], state_of_choice))
    new_groups = np.zeros_like(groups)
    np.cumsum(sizes[states], out=new_groups[1:])
    return order.astype(groups.dtype, copy=False), new_groups


def sorted_matrix(matrix: CsrMatrix, rows: IndexArray, states: IndexArray) -> CsrMatrix:
    """Return a matrix with its rows and columns in a new order, each row sorted by column.

    Parameters
    ----------
    matrix
        The matrix.
    rows
        Shape (rows,): the rows in their new order.
    states
        Shape (columns,): the columns in their new order.
    """
    from scipy.sparse import csr_matrix

    chosen = matrix.select_rows(rows)
    columns = inverse(states)[chosen.columns].astype(chosen.row_offsets.dtype, copy=False)
    content = (chosen.values, columns, chosen.row_offsets)
    by_rows = csr_matrix(content, shape=(chosen.num_rows, chosen.num_columns), copy=False)
    by_rows.sort_indices()
    return CsrMatrix(
        chosen.row_offsets,
        by_rows.indices.astype(index_dtype(chosen.num_columns), copy=False),
        by_rows.data,
        chosen.num_columns,
    )


def restored_rates(rates: FloatArray) -> FloatArray:
    """Return rates without the rounding of a way through probabilities and exit rates.

    A rate that was divided by the exit rate and multiplied by it again may be off by some units in
    the last place, so that one rate of the model becomes several. Rates within four units of each
    other become the one among them with the shortest decimal text, the most frequent of these.

    Parameters
    ----------
    rates
        Shape (entries,).
    """
    distinct, counts = np.unique(rates, return_counts=True)
    apart = np.diff(distinct) > _SAME_RATE * distinct[:-1]
    ends = np.concatenate((np.flatnonzero(apart) + 1, [len(distinct)]))
    chosen = distinct.copy()
    start = 0
    for end in ends.tolist():
        if end - start > 1 and distinct[end - 1] - distinct[start] <= _SAME_RATE * distinct[start]:
            group = range(start, end)
            best = min(group, key=lambda k: (len(repr(float(distinct[k]))), -int(counts[k])))
            chosen[start:end] = distinct[best]
        start = end
    if np.array_equal(chosen, distinct):
        return rates
    restored: FloatArray = chosen[np.searchsorted(distinct, rates)]
    return restored
