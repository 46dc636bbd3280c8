"""Worklist algorithms for reachability in a model's graph.

Each function runs as it stands, on lists, or compiled by `engines.cpu.graph_kernels`, on arrays;
each looks at an edge a bounded number of times.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Vector(Protocol):
    """A list of numbers or Booleans, or a NumPy array of them."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> int: ...

    def __setitem__(self, index: int, value: int, /) -> None: ...


class Graph(NamedTuple):
    """The edges of a model, forwards and backwards.

    Parameters
    ----------
    groups
        Shape (states + 1,): the choices of state s are the rows ``groups[s]`` to
        ``groups[s + 1] - 1``; in a chain, each state has the row of its number.
    offsets, columns
        Shapes (rows + 1,) and (edges,): the successors of each row.
    pre_offsets, pre_rows
        Shapes (states + 1,) and (edges,): the rows that enter each state.
    state_of
        Shape (rows,): the state whose choice each row is.
    """

    groups: Vector
    offsets: Vector
    columns: Vector
    pre_offsets: Vector
    pre_rows: Vector
    state_of: Vector


def count_entries(columns: Vector, starts: Vector) -> None:
    """Turn zeros, shape (states + 1,), into the offsets of the states' incoming edges."""
    for entry in range(len(columns)):
        starts[columns[entry] + 1] += 1
    for state in range(len(starts) - 1):
        starts[state + 1] += starts[state]


def sort_entries(offsets: Vector, columns: Vector, ends: Vector, pre_rows: Vector) -> None:
    """Put each edge's row where its target's incoming edges are: the scatter of a counting sort.

    `ends` comes as a copy of the offsets of the incoming edges, and leaves as their ends.
    """
    for row in range(len(offsets) - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            after = columns[entry]
            pre_rows[ends[after]] = row
            ends[after] += 1


def close_forwards(graph: Graph, closed: Vector, stack: Vector) -> None:
    """Add to the set `closed` whatever it reaches."""
    groups, offsets, columns = graph.groups, graph.offsets, graph.columns
    top = 0
    for state in range(len(closed)):
        if closed[state]:
            stack[top] = state
            top += 1
    while top:
        top -= 1
        state = stack[top]
        for entry in range(offsets[groups[state]], offsets[groups[state + 1]]):
            after = columns[entry]
            if not closed[after]:
                closed[after] = True
                stack[top] = after
                top += 1


def close_some(graph: Graph, through: Vector, closed: Vector, stack: Vector) -> None:
    """Add to `closed` each state of `through` of which some choice may enter it."""
    pre_offsets, pre_rows, state_of = graph.pre_offsets, graph.pre_rows, graph.state_of
    top = 0
    for state in range(len(closed)):
        if closed[state]:
            stack[top] = state
            top += 1
    while top:
        top -= 1
        state = stack[top]
        for entry in range(pre_offsets[state], pre_offsets[state + 1]):
            before = state_of[pre_rows[entry]]
            if through[before] and not closed[before]:
                closed[before] = True
                stack[top] = before
                top += 1


def close_all(
    graph: Graph, through: Vector, closed: Vector, stack: Vector, entered: Vector, missing: Vector
) -> None:
    """Add to `closed` each state of `through` of which every choice may enter it.

    `entered`, shape (rows,), starts false; `missing`, shape (states,), as the number of choices.
    """
    pre_offsets, pre_rows, state_of = graph.pre_offsets, graph.pre_rows, graph.state_of
    top = 0
    for state in range(len(closed)):
        if closed[state]:
            stack[top] = state
            top += 1
    while top:
        top -= 1
        state = stack[top]
        for entry in range(pre_offsets[state], pre_offsets[state + 1]):
            row = pre_rows[entry]
            if entered[row]:
                continue
            entered[row] = True
            before = state_of[row]
            missing[before] -= 1
            if missing[before] == 0 and through[before] and not closed[before]:
                closed[before] = True
                stack[top] = before
                top += 1


def join_members(labels: Vector, heads: Vector, leader: Vector, following: Vector) -> None:
    """Make each component, and each state outside of them, a list: from its leader to −1.

    `heads`, shape (components,), and `following` start as −1.
    """
    for state in range(len(labels)):
        leader[state] = state
        if labels[state] >= 0:
            if heads[labels[state]] < 0:
                heads[labels[state]] = state
            first = heads[labels[state]]
            leader[state] = first
            if first != state:
                following[state] = following[first]
                following[first] = state


def drop_failing(
    graph: Graph,
    goal: Vector,
    inner: Vector,
    kept: Vector,
    leader: Vector,
    following: Vector,
    exits: Vector,
    stack: Vector,
) -> None:
    """Drop from the set `kept` each component whose choices all may leave the set.

    A component is a list as made by `join_members`; its `inner` choices, shape (rows,), do not
    count, and become true for those that were lost. The goal stays. `exits` starts as zeros.
    """
    offsets, pre_rows, state_of = graph.offsets, graph.pre_rows, graph.state_of
    for row in range(len(state_of)):
        if not inner[row] and offsets[row] < offsets[row + 1]:
            exits[leader[state_of[row]]] += 1
    top = 0
    for state in range(len(kept)):
        if kept[state] and not goal[state] and exits[leader[state]] == 0:
            kept[state] = False
        if not kept[state]:
            stack[top] = state
            top += 1
    while top:
        top -= 1
        state = stack[top]
        for entry in range(graph.pre_offsets[state], graph.pre_offsets[state + 1]):
            row = pre_rows[entry]
            if inner[row]:
                continue
            inner[row] = True
            member = leader[state_of[row]]
            exits[member] -= 1
            if exits[member] == 0 and kept[member] and not goal[member]:
                while member >= 0:
                    kept[member] = False
                    stack[top] = member
                    top += 1
                    member = following[member]
