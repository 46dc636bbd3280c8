"""A topological order of components, by their levels.

Each function runs as it stands, on lists, or compiled by `engines.cpu.graph_kernels`, on arrays.
"""

from __future__ import annotations

from engines.cpu.graph_closures import Graph, Vector


def sort_members(labels: Vector, bounds: Vector, members: Vector) -> None:
    """Sort the states by their components, those without one left out.

    `bounds`, shape (components + 1,), comes as zeros; component k becomes ``members[bounds[k]]`` to
    ``members[bounds[k + 1] - 1]``.
    """
    count = len(bounds) - 1
    for state in range(len(labels)):
        if labels[state] >= 0:
            bounds[labels[state]] += 1
    total = 0
    for component in range(count):
        total += bounds[component]
        bounds[component] = total
    bounds[count] = total
    for state in range(len(labels) - 1, -1, -1):
        if labels[state] >= 0:
            bounds[labels[state]] -= 1
            members[bounds[labels[state]]] = state


def component_levels(
    graph: Graph,
    labels: Vector,
    bounds: Vector,
    members: Vector,
    waiting: Vector,
    ready: Vector,
    levels: Vector,
) -> int:
    """Write how many components follow each other from each on, itself left out.

    Returns how many levels there are. `waiting` and `levels`, shape (components,), come as zeros;
    `ready`, of that shape, is scratch.
    """
    groups, offsets, columns = graph.groups, graph.offsets, graph.columns
    for state in range(len(labels)):
        own = labels[state]
        if own >= 0:
            for entry in range(offsets[groups[state]], offsets[groups[state + 1]]):
                other = labels[columns[entry]]
                if other >= 0 and other != own:
                    waiting[own] += 1
    top, num_levels = 0, 0
    for component in range(len(waiting)):
        if waiting[component] == 0:
            ready[top] = component
            top += 1
    while top:
        top -= 1
        own = ready[top]
        above = levels[own] + 1
        num_levels = max(num_levels, above)
        for at in range(bounds[own], bounds[own + 1]):
            state = members[at]
            for entry in range(graph.pre_offsets[state], graph.pre_offsets[state + 1]):
                other = labels[graph.state_of[graph.pre_rows[entry]]]
                if other >= 0 and other != own:
                    levels[other] = max(levels[other], above)
                    waiting[other] -= 1
                    if waiting[other] == 0:
                        ready[top] = other
                        top += 1
    return num_levels


def sort_by_level(levels: Vector, ends: Vector, order: Vector) -> None:
    """List the components by level, those of one level by number.

    `ends`, shape (levels,), comes as zeros.
    """
    for component in range(len(levels)):
        ends[levels[component]] += 1
    for level in range(1, len(ends)):
        ends[level] += ends[level - 1]
    for component in range(len(levels) - 1, -1, -1):
        ends[levels[component]] -= 1
        order[ends[levels[component]]] = component
