"""Strongly connected components of a block of states, by the compiled library."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engines.cpu.graph_closures import Graph, Vector
from engines.host.graphs import HostGraph


class Partition(NamedTuple):
    """Disjoint blocks of states.

    Parameters
    ----------
    order, place
        Shape (states,): the states block by block, and where in there each state is.
    block
        Shape (states,): the block of each state, −1 for none.
    begin, end
        Shape (blocks,): a block is ``order[begin]`` to ``order[end - 1]``.
    """

    order: Vector
    place: Vector
    block: Vector
    begin: Vector
    end: Vector


class Search(NamedTuple):
    """What a search finds, in `found` and `bounds`, and room, each of shape (states,)."""

    number: Vector
    oldest: Vector
    row_at: Vector
    entry_at: Vector
    path: Vector
    opened: Vector
    found: Vector
    bounds: Vector


def first_block(chosen: Vector, partition: Partition) -> None:
    """Make the chosen states block 0, and leave the others out."""
    states = np.flatnonzero(np.asarray(chosen))
    _write(partition.block, np.where(np.asarray(chosen), 0, -1))
    _write(partition.order, states)
    for at, state in enumerate(states.tolist()):
        partition.place[state] = at
    partition.begin[0], partition.end[0] = 0, len(states)


def strong_components(
    graph: Graph, usable: Vector, partition: Partition, own: int, search: Search
) -> int:
    """Find the strongly connected components of a block; return how many there are (Tarjan 1972).

    Component k is ``search.found[search.bounds[k - 1]]`` to ``search.found[search.bounds[k] - 1]``,
    the first from 0; each comes after those that it may enter.
    """
    groups, offsets, columns = (np.asarray(part, dtype=np.int64) for part in graph[:3])
    size = len(groups) - 1
    inside = np.asarray(partition.block) == own
    host = HostGraph(size, groups, offsets, columns)
    states, bounds = host.ordered_components(inside, np.asarray(usable, dtype=np.bool_))
    _write(search.found, states)
    _write(search.bounds, bounds[1:])
    return len(bounds) - 1


def _write(vector: Any, values: Any) -> None:
    vector[: len(values)] = values if isinstance(vector, np.ndarray) else values.tolist()
