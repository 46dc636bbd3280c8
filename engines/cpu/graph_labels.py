"""Strongly connected components as labels of states, by one search of the whole graph.

Each function runs as it stands, on lists, or compiled by `engines.cpu.graph_kernels`, on arrays.
The edges of state s lead to ``columns[starts[s]]`` to ``columns[starts[s + 1] - 1]``.
"""

from __future__ import annotations

from typing import NamedTuple

from engines.cpu.graph_closures import Graph, Vector

FAR = 16
"""From here on the numbers of two states are far apart: they share no line of a cache."""

PROBED_SHARE = 256
"""One in so many states is entered to compare the two orders of a state's edges."""

MUCH_NEARER = 4
"""Edges are followed backwards where that makes so many times fewer far steps: less says little."""


class Stacks(NamedTuple):
    """Scratch of a depth-first search, each of shape (states,)."""

    path: Vector
    entry_at: Vector
    low: Vector


def unlabelled(chosen: Vector, labels: Vector) -> None:
    """Prepare the labels of a search: 0 for the chosen states, else more than any label."""
    outside = len(labels) + 1
    for state in range(len(labels)):
        labels[state] = 0 if chosen[state] else outside


def label_components(
    starts: Vector, columns: Vector, labels: Vector, stacks: Stacks, backwards: int
) -> int:
    """Label the strongly connected components of the chosen states; return how many there are.

    The components have the labels ``len(labels)`` downwards, each before those that may enter it;
    other states keep theirs.

    Parameters
    ----------
    starts, columns
        The edges.
    labels
        As `unlabelled` leaves them.
    stacks
        Scratch.
    backwards
        1 to follow a state's last edge first, 0 to follow its first.

    Notes
    -----
    Tarjan (1972), with what Pearce (2016), A space-efficient algorithm for finding strongly
    connected components, does to look up one number an edge: the states that are entered and in no
    component yet are numbered 1, 2, … in `labels` itself, and the numbers of a component are used
    again, so that they stay below all labels.
    """
    path, entry_at, lows = stacks
    size, step = len(labels), 1 - 2 * backwards
    # The path is at the front of its array; left states without a component are at the end.
    number, opened, count = 1, size, 0
    for root in range(size):
        if labels[root]:
            continue
        depth, state, low = 0, root, number
        labels[state] = number
        number += 1
        entry = starts[state + backwards] - backwards
        while True:
            last = starts[state + 1 - backwards] - backwards
            child = -1
            while entry != last:
                after = columns[entry]
                entry += step
                seen = labels[after]
                if seen < low:
                    if seen == 0:
                        child = after
                        break
                    low = seen
            if child >= 0:
                path[depth], entry_at[depth], lows[depth] = state, entry, low
                depth += 1
                state, low = child, number
                labels[state] = number
                number += 1
                entry = starts[state + backwards] - backwards
                continue
            own = labels[state]
            if low == own:
                while opened < size and labels[path[opened]] > own:
                    labels[path[opened]] = size - count
                    opened += 1
                labels[state] = size - count
                count += 1
                number = own
            else:
                opened -= 1
                path[opened] = state
            if depth == 0:
                break
            depth -= 1
            state, entry = path[depth], entry_at[depth]
            low = min(low, lows[depth])
    return count


def far_steps(
    starts: Vector, columns: Vector, labels: Vector, stacks: Stacks, backwards: int
) -> int:
    """Return how many of the first states that a search enters are far from the one before.

    A search is as fast as the caches let it: among processes that go round, those should go first
    whose steps are short; among processes that come to an end, last. `labels`, as `unlabelled`
    leaves them, are restored.
    """
    path, entry_at, entered = stacks
    size, step = len(labels), 1 - 2 * backwards
    budget, number, far, before = size // PROBED_SHARE, 0, 0, 0
    for root in range(size):
        if number == budget:
            break
        if labels[root]:
            continue
        depth, child = 0, root
        while number < budget:
            if child >= 0:
                far += abs(child - before) >= FAR
                before = child
                labels[child] = 1
                entered[number] = child
                number += 1
                path[depth], entry_at[depth] = child, starts[child + backwards] - backwards
                depth += 1
            state, entry = path[depth - 1], entry_at[depth - 1]
            last = starts[state + 1 - backwards] - backwards
            child = -1
            while entry != last and child < 0:
                if labels[columns[entry]] == 0:
                    child = columns[entry]
                entry += step
            entry_at[depth - 1] = entry
            if child < 0:
                depth -= 1
                if depth == 0:
                    break
    for at in range(number):
        labels[entered[at]] = 0
    return far


def order_labels(labels: Vector) -> None:
    """Number the components from 0 on, each after those that it may enter; other states get −1."""
    size = len(labels)
    for state in range(size):
        labels[state] = size - labels[state]


def mark_leaving(graph: Graph, labels: Vector, leaving: Vector) -> None:
    """Mark the components that an edge leaves."""
    groups, offsets, columns = graph.groups, graph.offsets, graph.columns
    for state in range(len(labels)):
        own = labels[state]
        if own >= 0 and not leaving[own]:
            for entry in range(offsets[groups[state]], offsets[groups[state + 1]]):
                if labels[columns[entry]] != own:
                    leaving[own] = True
                    break


def keep_usable(graph: Graph, usable: Vector, starts: Vector, columns: Vector) -> None:
    """Copy the edges of usable choices: to `columns`, and `starts`, shape (states + 1,)."""
    size = 0
    for state in range(len(starts) - 1):
        starts[state] = size
        for row in range(graph.groups[state], graph.groups[state + 1]):
            if usable[row]:
                for entry in range(graph.offsets[row], graph.offsets[row + 1]):
                    columns[size] = graph.columns[entry]
                    size += 1
    starts[len(starts) - 1] = size
