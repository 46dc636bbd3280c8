"""Strongly connected components and maximal end components, by splitting a partition of states.

Each function runs as it stands, on lists, or compiled by `engines.cpu.graph_kernels`, on arrays.
"""

from __future__ import annotations

from typing import NamedTuple

from engines.cpu.graph_closures import Graph, Vector

FIRST_BUDGET = 32
"""States that a search for a closed set may visit before the other candidates have their turn."""


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
    """Scratch of a depth-first search, each of shape (states,); `number` starts as zeros."""

    number: Vector
    low: Vector
    row_at: Vector
    entry_at: Vector
    path: Vector
    opened: Vector
    found: Vector
    bounds: Vector


class Choices(NamedTuple):
    """The choices that a strategy may still make.

    Parameters
    ----------
    usable
        Shape (rows,).
    remaining
        Shape (states,): the number of usable choices.
    lost
        Shape (rows,): stack of the choices that were lost and whose states are to be looked at.
    removed
        Shape (states,): stack of the states that have none left.
    """

    usable: Vector
    remaining: Vector
    lost: Vector
    removed: Vector


def first_block(chosen: Vector, partition: Partition) -> None:
    """Make the chosen states block 0, and leave the others out."""
    size = 0
    for state in range(len(chosen)):
        partition.block[state] = -1
        if chosen[state]:
            partition.block[state] = 0
            partition.order[size] = state
            partition.place[state] = size
            size += 1
    partition.begin[0] = 0
    partition.end[0] = size


def strong_components(
    graph: Graph, usable: Vector, partition: Partition, own: int, search: Search
) -> int:
    """Find the strongly connected components of a block; return how many there are (Tarjan 1972).

    Component k is ``search.found[search.bounds[k - 1]]`` to ``search.found[search.bounds[k] - 1]``,
    the first from 0; each comes after those that it may enter.
    """
    groups, offsets, columns = graph.groups, graph.offsets, graph.columns
    order, block = partition.order, partition.block
    number, low, row_at, entry_at = search.number, search.low, search.row_at, search.entry_at
    path, opened, found, bounds = search.path, search.opened, search.found, search.bounds
    finished = len(order) + 1
    counter, num_open, num_found, count = 0, 0, 0, 0
    for at in range(partition.begin[own], partition.end[own]):
        number[order[at]] = 0
    for at in range(partition.begin[own], partition.end[own]):
        state = order[at]
        if number[state]:
            continue
        depth = 0
        entering = True
        while True:
            if entering:
                counter += 1
                number[state] = counter
                low[state] = counter
                row_at[state] = groups[state]
                entry_at[state] = offsets[groups[state]]
                path[depth] = state
                depth += 1
                opened[num_open] = state
                num_open += 1
                entering = False
            row, entry, lowest = row_at[state], entry_at[state], low[state]
            last = groups[state + 1]
            child = -1
            while row < last:
                stop = offsets[row + 1]
                if usable[row]:
                    while entry < stop:
                        after = columns[entry]
                        entry += 1
                        if block[after] != own:
                            continue
                        if number[after] == 0:
                            child = after
                            break
                        # A finished state's number is larger than any.
                        if number[after] < lowest:
                            lowest = number[after]
                    if child >= 0:
                        break
                row += 1
                entry = stop
            row_at[state], entry_at[state], low[state] = row, entry, lowest
            if child >= 0:
                state = child
                entering = True
                continue
            depth -= 1
            if lowest == number[state]:
                member = -1
                while member != state:
                    num_open -= 1
                    member = opened[num_open]
                    number[member] = finished
                    found[num_found] = member
                    num_found += 1
                bounds[count] = num_found
                count += 1
            if depth == 0:
                break
            state = path[depth - 1]
            if lowest < low[state]:
                low[state] = lowest
    return count


def split_by_components(partition: Partition, search: Search, own: int, blocks: int) -> int:
    """Make each component that was found a block; return the number of blocks.

    The first component keeps the number of the block, the others are numbered from `blocks` on.
    """
    order, place, block = partition.order, partition.place, partition.block
    at, component, first = 0, 0, partition.begin[own]
    size = partition.end[own] - first
    name = own
    while at < size:
        partition.begin[name] = first + at
        while at < search.bounds[component]:
            state = search.found[at]
            order[first + at] = state
            place[state] = first + at
            block[state] = name
            at += 1
        partition.end[name] = first + at
        component += 1
        name = blocks + component - 1
    return blocks + component - 1


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


def renumber(labels: Vector, names: Vector) -> int:
    """Number the labels by their smallest state; return how many there are.

    `names`, as long as the largest label plus one, starts as −1.
    """
    count = 0
    for state in range(len(labels)):
        label = labels[state]
        if label >= 0:
            if names[label] < 0:
                names[label] = count
                count += 1
            labels[state] = names[label]
    return count


def detach(partition: Partition, state: int) -> None:
    """Move a state behind the end of its block."""
    order, place = partition.order, partition.place
    own = partition.block[state]
    last = partition.end[own] - 1
    at, other = place[state], order[last]
    order[at], place[other] = other, at
    order[last], place[state] = state, last
    partition.end[own] = last


def first_choices(graph: Graph, partition: Partition, choices: Choices) -> int:
    """Keep the usable choices that stay in block 0; return the number of states without any.

    These states are on the stack of those to be removed.
    """
    offsets, columns, block = graph.offsets, graph.columns, partition.block
    num_removed = 0
    for state in range(len(block)):
        choices.remaining[state] = 0
        for row in range(graph.groups[state], graph.groups[state + 1]):
            # A choice without successors is none.
            stays = choices.usable[row] and block[state] == 0 and offsets[row] < offsets[row + 1]
            if stays:
                for entry in range(offsets[row], offsets[row + 1]):
                    if block[columns[entry]] != 0:
                        stays = False
                        break
            choices.usable[row] = stays
            if stays:
                choices.remaining[state] += 1
        if block[state] == 0 and choices.remaining[state] == 0:
            choices.removed[num_removed] = state
            num_removed += 1
    return num_removed


def lose(graph: Graph, choices: Choices, row: int, num_lost: int, num_removed: int) -> int:
    """Make a choice unusable; return the number of states that wait for their removal."""
    state = graph.state_of[row]
    choices.usable[row] = False
    choices.lost[num_lost] = row
    choices.remaining[state] -= 1
    if choices.remaining[state] == 0:
        choices.removed[num_removed] = state
        return num_removed + 1
    return num_removed


def remove_states(
    graph: Graph, partition: Partition, choices: Choices, own: int, num_removed: int, num_lost: int
) -> int:
    """Remove states without choices from a block, and whatever is forced into them.

    Returns the number of choices lost so far. Choices of other blocks that may enter a removed
    state are lost when their own block is looked at.
    """
    block = partition.block
    while num_removed:
        num_removed -= 1
        state = choices.removed[num_removed]
        detach(partition, state)
        block[state] = -1
        for entry in range(graph.pre_offsets[state], graph.pre_offsets[state + 1]):
            row = graph.pre_rows[entry]
            if choices.usable[row] and block[graph.state_of[row]] == own:
                num_removed = lose(graph, choices, row, num_lost, num_removed)
                num_lost += 1
    return num_lost


def lose_leaving(
    graph: Graph, partition: Partition, choices: Choices, own: int, num_lost: int
) -> int:
    """Lose the choices that may leave their block; return the number of choices lost so far."""
    offsets, columns, block = graph.offsets, graph.columns, partition.block
    num_removed = 0
    for at in range(partition.begin[own], partition.end[own]):
        state = partition.order[at]
        for row in range(graph.groups[state], graph.groups[state + 1]):
            if choices.usable[row]:
                for entry in range(offsets[row], offsets[row + 1]):
                    if block[columns[entry]] != own:
                        num_removed = lose(graph, choices, row, num_lost, num_removed)
                        num_lost += 1
                        break
    return remove_states(graph, partition, choices, own, num_removed, num_lost)


def closed_set(
    graph: Graph, usable: Vector, search: Search, start: int, budget: int, mark: int
) -> int:
    """Collect in `search.found` what a state reaches by usable choices.

    Returns how many states, or 0 if there are more than the budget. `search.low` holds marks.
    """
    groups, offsets, columns = graph.groups, graph.offsets, graph.columns
    found, marks = search.found, search.low
    found[0], marks[start] = start, mark
    size, at = 1, 0
    while at < size:
        state = found[at]
        at += 1
        for row in range(groups[state], groups[state + 1]):
            if usable[row]:
                for entry in range(offsets[row], offsets[row + 1]):
                    after = columns[entry]
                    if marks[after] != mark:
                        if size == budget:
                            return 0
                        marks[after] = mark
                        found[size] = after
                        size += 1
    return size


def split_closed(
    graph: Graph,
    partition: Partition,
    choices: Choices,
    search: Search,
    own: int,
    size: int,
    new: int,
    num_lost: int,
) -> int:
    """Make the closed set of this size in `search.found` the block `new`, apart from its own.

    Returns the number of choices lost so far: those of the old block that may enter the set.
    """
    block = partition.block
    for at in range(size):
        detach(partition, search.found[at])
        block[search.found[at]] = new
    partition.begin[new] = partition.end[own]
    partition.end[new] = partition.end[own] + size
    num_removed = 0
    for at in range(size):
        state = search.found[at]
        for entry in range(graph.pre_offsets[state], graph.pre_offsets[state + 1]):
            row = graph.pre_rows[entry]
            if choices.usable[row] and block[graph.state_of[row]] == own:
                num_removed = lose(graph, choices, row, num_lost, num_removed)
                num_lost += 1
    return remove_states(graph, partition, choices, own, num_removed, num_lost)


def end_components(
    graph: Graph,
    partition: Partition,
    choices: Choices,
    search: Search,
    pending: Vector,
    first_lost: Vector,
    last_lost: Vector,
) -> None:
    """Split block 0 until each block is a maximal end component.

    A block is split into its strong components, the choices that may leave them are lost, and only
    components that lost any are looked at again (de Alfaro 1997, section 3.4). Before all of such a
    component is searched, small sets that cannot be left any more are split off: each holds a state
    that lost a choice, and is found from there at the cost of its own size. Without that, nested
    rings that break one by one would take quadratic time (the idea is the lock-step search of
    Chatterjee and Henzinger 2011; here budgets that grow take turns).

    `pending`, `first_lost` and `last_lost` are a stack of blocks, each with its part of the lost
    choices.
    """
    begin, end, lost = partition.begin, partition.end, choices.lost
    blocks, mark = 1, 0
    pending[0], first_lost[0], last_lost[0] = 0, 0, 0
    top = 1
    while top:
        top -= 1
        own, first, num_lost = pending[top], first_lost[top], last_lost[top]
        # Those from `first` to `tried` did not find a small set within the budget, those from `at`
        # on have not been asked.
        tried, at, budget = first, first, FIRST_BUDGET
        while True:
            if at == num_lost:
                at, num_lost, tried = first, tried, first
                budget *= 4
            candidates = tried - first + num_lost - at
            size = end[own] - begin[own]
            if candidates == 0 or candidates * budget > size:
                break
            row = lost[at]
            at += 1
            if partition.block[graph.state_of[row]] != own:
                continue
            mark -= 1
            found = closed_set(graph, choices.usable, search, graph.state_of[row], budget, mark)
            if found == 0 or found == size:
                lost[tried] = row
                tried += 1
                continue
            num_lost = split_closed(graph, partition, choices, search, own, found, blocks, num_lost)
            if found > 1:
                pending[top], first_lost[top], last_lost[top] = blocks, num_lost, num_lost
                top += 1
            blocks += 1
            budget = FIRST_BUDGET
        if end[own] - begin[own] < 2:
            continue
        num_lost = first
        count = strong_components(graph, choices.usable, partition, own, search)
        if count == 1:
            continue
        unnamed = blocks
        blocks = split_by_components(partition, search, own, blocks)
        for component in range(count):
            name = own if component == 0 else unnamed + component - 1
            before = num_lost
            num_lost = lose_leaving(graph, partition, choices, name, before)
            if num_lost > before and end[name] - begin[name] > 1:
                pending[top], first_lost[top], last_lost[top] = name, before, num_lost
                top += 1
            else:
                num_lost = before
