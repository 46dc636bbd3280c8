"""The layers that a diagram's matrix consists of: its distinct blocks, level by level.

A matrix is followed down by triples: a node of the diagram, and the nodes of the numbering that the
rows and the columns have reached. Equal triples stand for equal blocks of the matrix, so each is
kept once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from engines.arrays import IndexArray
from engines.diagrams.diagram import NO_STATES, ZERO, Diagram, StateNumbering
from engines.errors import InvalidModelError, UnsupportedError

NO_BLOCK = -1
"""Where a triple has no child, because no entry lies there."""

Triples: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
"""Nodes of the diagram, row nodes and column nodes of the numbering, each of shape (triples,)."""


@dataclass(frozen=True)
class Layer:
    """The distinct triples of a level that have entries below.

    Parameters
    ----------
    nodes, rows, columns
        Shape (triples,), int32: node of the diagram, row node and column node of the numbering.
    children
        Shape (2, 2, triples), int32: by row bit and column bit, the triple of the next layer, or
        `NO_BLOCK`; of shape (2, 2, 0) below the last variable.
    entries
        Shape (triples,), int64: number of entries below.
    """

    nodes: NDArray[np.int32]
    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    children: NDArray[np.int32]
    entries: NDArray[np.int64]


def check_order(numbering: StateNumbering) -> None:
    """Raise unless the two variables of a state variable are next to each other in the diagram.

    Raises
    ------
    InvalidModelError
        There are not as many row variables as column variables.
    UnsupportedError
        Naming the first two state variables that are mixed.
    """
    rows, columns = numbering.rows, numbering.columns
    if len(rows) != len(columns):
        raise InvalidModelError(f"{len(rows)} row variables, but {len(columns)} column variables")
    wrong = np.maximum(rows, columns)[:-1] >= np.minimum(rows, columns)[1:]
    if wrong.any():
        level = int(wrong.argmax())
        raise UnsupportedError(
            f"the variables of the state variables {level} and {level + 1} of a diagram are mixed: "
            f"rows {rows[level]} and {rows[level + 1]}, columns {columns[level]} and "
            f"{columns[level + 1]}"
        )


def check_counts(numbering: StateNumbering) -> None:
    """Raise unless each node of a numbering has as many states as its children together.

    Raises
    ------
    InvalidModelError
        Naming the first node that has not.
    """
    if numbering.num_states == 0:
        return
    low, high, counts = numbering.low, numbering.high, numbering.counts
    # One more, for NO_STATES = −1.
    padded = np.append(counts, 0)
    ends = (low == NO_STATES) & (high == NO_STATES)
    wrong = np.where(
        ends,
        counts != 1,
        (numbering.low_counts != padded[low]) | (counts - numbering.low_counts != padded[high]),
    )
    empty = ((low != NO_STATES) & (padded[low] == 0)) | ((high != NO_STATES) & (padded[high] == 0))
    if (wrong | empty).any():
        node = int((wrong | empty).argmax())
        raise InvalidModelError(
            f"node {node} of a numbering has {counts[node]} states, {numbering.low_counts[node]} "
            f"of them below its lower child, but its children have {padded[low[node]]} and "
            f"{padded[high[node]]}"
        )


def check_variables(diagram: Diagram, nodes: IndexArray, least: int) -> None:
    """Raise if one of the nodes tests a variable above another, which has been decided already.

    Raises
    ------
    InvalidModelError
        Naming the variable.
    """
    early = diagram.variables[nodes] < least
    if early.any():
        node = int(nodes[early.argmax()])
        raise foreign_variable(diagram, node, "row, column or choice variables")


def foreign_variable(diagram: Diagram, node: int, allowed: str) -> InvalidModelError:
    """Return the error of a function that depends on a variable it must not depend on.

    Parameters
    ----------
    diagram
        The function's diagram.
    node
        A node of it that tests the variable.
    allowed
        Which variables it may depend on.
    """
    return InvalidModelError(
        f"the function of a diagram depends on variable {int(diagram.variables[node])}, which is "
        f"not one of its {allowed}"
    )


def distinct(
    nodes: IndexArray, rows: IndexArray, columns: IndexArray
) -> tuple[Triples, NDArray[np.int32]]:
    """Return the distinct ones of triples, and which of them each one given is.

    Parameters
    ----------
    nodes, rows, columns
        Shape (given,): any triples.

    Returns
    -------
    Those that may have entries, and the number among them of each one given, shape (given,), or
    `NO_BLOCK`.
    """
    present = (nodes != ZERO) & (rows != NO_STATES) & (columns != NO_STATES)
    numbers = np.full(len(nodes), NO_BLOCK, dtype=np.int32)
    parts = [part[present].astype(np.int64) for part in (nodes, rows, columns)]
    key = np.zeros(len(parts[0]), dtype=np.int64)
    size = 1
    for part in parts:
        largest = int(part.max(initial=0)) + 1
        if size * largest > 2**62:
            known, key = np.unique(key, return_inverse=True)
            size = len(known)
        key = key * largest + part
        size *= largest
    _, sample, inverse = np.unique(key, return_index=True, return_inverse=True)
    numbers[present] = inverse
    chosen = [part[sample].astype(np.int32) for part in parts]
    return (chosen[0], chosen[1], chosen[2]), numbers


def descend(
    diagram: Diagram,
    numbering: StateNumbering,
    level: int,
    triples: Triples,
) -> tuple[Triples, NDArray[np.int32]]:
    """Return the triples one level below, and which of them are the children of those given.

    Parameters
    ----------
    diagram
        The function.
    numbering
        The states.
    level
        The level of the triples given, whose variables are decided.
    triples
        The distinct triples of the level.

    Returns
    -------
    The triples, and by row bit and column bit their numbers, shape (2, 2, given), or `NO_BLOCK`.

    Raises
    ------
    InvalidModelError
        A node tests a variable that is neither the row's nor the column's.
    """
    nodes, rows, columns = triples
    row_variable, column_variable = int(numbering.rows[level]), int(numbering.columns[level])
    first = min(row_variable, column_variable)
    second = max(row_variable, column_variable)
    check_variables(diagram, nodes, first)
    found = np.empty((2, 2, len(nodes)), dtype=np.int32)
    for bit, halves in enumerate(_cofactors(diagram, nodes, first)):
        check_variables(diagram, halves, second)
        for other, quarters in enumerate(_cofactors(diagram, halves, second)):
            at = (bit, other) if first == row_variable else (other, bit)
            found[at] = quarters
    steps = np.stack((numbering.low[rows], numbering.high[rows]))
    across = np.stack((numbering.low[columns], numbering.high[columns]))
    down = np.broadcast_to(steps[:, None], found.shape)
    right = np.broadcast_to(across[None], found.shape)
    below, numbers = distinct(found.ravel(), down.ravel(), right.ravel())
    return below, numbers.reshape(found.shape)


def _cofactors(
    diagram: Diagram, nodes: NDArray[np.int32], variable: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    tests = diagram.variables[nodes] == variable
    return (
        np.where(tests, diagram.low[nodes], nodes),
        np.where(tests, diagram.high[nodes], nodes),
    )


def with_entries(
    layers: list[Triples],
    links: list[NDArray[np.int32]],
    first: NDArray[np.int32],
) -> tuple[tuple[Layer, ...], NDArray[np.int32]]:
    """Return the layers without the triples that no entry lies below, and the roots among them.

    Parameters
    ----------
    layers
        The distinct triples of each level.
    links
        The children of each level but the last, as `descend` returns them.
    first
        Shape (choices,): the triple of the first layer that each choice begins with.
    """
    nodes, rows, columns = layers[-1]
    entries = np.ones(len(nodes), dtype=np.int64)
    done = [Layer(nodes, rows, columns, np.empty((2, 2, 0), dtype=np.int32), entries)]
    # One more, for the triple NO_BLOCK = −1: no entries, and it stays itself.
    padded = np.append(entries, 0)
    renumbered = np.append(np.arange(len(nodes), dtype=np.int32), np.int32(NO_BLOCK))
    for (nodes, rows, columns), children in zip(layers[-2::-1], links[::-1], strict=True):
        entries = padded[children].sum(axis=(0, 1))
        kept = entries > 0
        links_kept = renumbered[children[:, :, kept]]
        done.append(Layer(nodes[kept], rows[kept], columns[kept], links_kept, entries[kept]))
        padded = np.append(entries, 0)
        renumbered = np.append(
            np.where(kept, np.cumsum(kept, dtype=np.int32) - 1, NO_BLOCK).astype(np.int32),
            np.int32(NO_BLOCK),
        )
    return tuple(done[::-1]), renumbered[first]


def count_strips(numbering: StateNumbering) -> NDArray[np.int64]:
    """Return how many paths of the numbering lead to each level, shape (levels + 1,)."""
    nodes = np.array([numbering.root] if numbering.num_states else [], dtype=np.int64)
    paths = np.ones(len(nodes), dtype=np.int64)
    found = [paths.sum()]
    for _ in range(numbering.num_levels):
        below = np.concatenate((numbering.low[nodes], numbering.high[nodes]))
        paths = np.tile(paths, 2)
        present = below != NO_STATES
        nodes, inverse = np.unique(below[present], return_inverse=True)
        counts = np.zeros(len(nodes), dtype=np.int64)
        np.add.at(counts, inverse, paths[present])
        paths = counts
        found.append(paths.sum())
    return np.array(found, dtype=np.int64)
