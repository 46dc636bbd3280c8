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
    oldest: Vector
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


class Pending(NamedTuple):
    """A stack of blocks that are to be split, each with its part of the lost choices."""

    block: Vector
    first_lost: Vector
    last_lost: Vector


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
    order, number, oldest = partition.order, search.number, search.oldest
    row_at, entry_at, path = search.row_at, search.entry_at, search.path
    opened, found, bounds = search.opened, search.found, search.bounds
    # Numbers fall. States of other blocks, and those in a component, have 0, which is never the
    # largest: one look at a successor's number tells all.
    for at in range(partition.begin[own], partition.end[own]):
        number[order[at]] = -1
    unused = partition.end[own] - partition.begin[own]
    num_open, num_found, count = 0, 0, 0
    for at in range(partition.begin[own], partition.end[own]):
        state = order[at]
        if number[state] >= 0:
            continue
        depth = 0
        entering, highest, row, entry = True, 0, 0, 0
        while True:
            if entering:
                number[state] = highest = unused
                unused -= 1
                row, entry = groups[state], offsets[groups[state]]
                opened[num_open] = state
                num_open += 1
                entering = False
            last = groups[state + 1]
            child = -1
            while row < last:
                stop = offsets[row + 1]
                if usable[row]:
                    while entry < stop:
                        after = columns[entry]
                        entry += 1
                        seen = number[after]
                        if seen < 0:
                            child = after
                            break
                        if seen > highest:
                            highest = seen
                    if child >= 0:
                        break
                row += 1
                entry = stop
            if child >= 0:
                path[depth], oldest[depth] = state, highest
                row_at[depth], entry_at[depth] = row, entry
                depth += 1
                state = child
                entering = True
                continue
            if highest == number[state]:
                member = -1
                while member != state:
                    num_open -= 1
                    member = opened[num_open]
                    number[member] = 0
                    found[num_found] = member
                    num_found += 1
                bounds[count] = num_found
                count += 1
            if depth == 0:
                break
            depth -= 1
            state, row, entry = path[depth], row_at[depth], entry_at[depth]
            highest = max(highest, oldest[depth])
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


def split_by_labels(partition: Partition, labels: Vector, count: int) -> None:
    """Make the components of block 0 blocks, numbered by their labels: 0 to `count` − 1."""
    order, place, block = partition.order, partition.place, partition.block
    begin, end = partition.begin, partition.end
    for name in range(count):
        end[name] = 0
    for state in range(len(labels)):
        if labels[state] >= 0:
            end[labels[state]] += 1
    first = 0
    for name in range(count):
        begin[name] = first
        first += end[name]
        end[name] = begin[name]
    for state in range(len(labels)):
        name = labels[state]
        if name >= 0:
            at = end[name]
            order[at], place[state], block[state] = state, at, name
            end[name] = at + 1


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
    groups, offsets, columns = graph.groups, graph.offsets, graph.columns
    block, usable = partition.block, choices.usable
    all_stay = partition.end[0] == len(block)
    num_removed = 0
    for state in range(len(block)):
        inside, remaining = block[state] == 0, 0
        for row in range(groups[state], groups[state + 1]):
            begin, end = offsets[row], offsets[row + 1]
            # A choice without successors is none.
            if not inside or begin == end:
                usable[row] = False
            elif usable[row]:
                if not all_stay:
                    for entry in range(begin, end):
                        if block[columns[entry]] != 0:
                            usable[row] = False
                            break
                remaining += usable[row]
        choices.remaining[state] = remaining
        if inside and remaining == 0:
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

    Returns how many states, or 0 if there are more than the budget. `search.oldest` holds marks.
    """
    groups, offsets, columns = graph.groups, graph.offsets, graph.columns
    found, marks = search.found, search.oldest
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


def lose_in_lone_state(graph: Graph, partition: Partition, choices: Choices, own: int) -> None:
    """Lose the choices that may leave a block of one state, and the state if none is left.

    No other choice of the block may enter it, so that nothing is forced into it.
    """
    state = partition.order[partition.begin[own]]
    for row in range(graph.groups[state], graph.groups[state + 1]):
        if choices.usable[row]:
            for entry in range(graph.offsets[row], graph.offsets[row + 1]):
                if graph.columns[entry] != state:
                    choices.usable[row] = False
                    choices.remaining[state] -= 1
                    break
    if choices.remaining[state] == 0:
        partition.block[state] = -1
        partition.end[own] = partition.begin[own]


def lose_in_each(
    graph: Graph,
    partition: Partition,
    choices: Choices,
    pending: Pending,
    top: int,
    own: int,
    new: int,
    count: int,
    num_lost: int,
) -> int:
    """Lose the choices that may leave the blocks into which one was split.

    The first of `count` blocks is `own`, the others are numbered from `new` on. Those of several
    states that lost any are pending from then on; returns how many blocks are.
    """
    begin, end = partition.begin, partition.end
    for part in range(count):
        name = own if part == 0 else new + part - 1
        if end[name] - begin[name] == 1:
            lose_in_lone_state(graph, partition, choices, name)
            continue
        before = num_lost
        num_lost = lose_leaving(graph, partition, choices, name, before)
        if num_lost > before and end[name] - begin[name] > 1:
            pending.block[top], pending.first_lost[top] = name, before
            pending.last_lost[top] = num_lost
            top += 1
        else:
            num_lost = before
    return top


def end_components(
    graph: Graph,
    partition: Partition,
    choices: Choices,
    search: Search,
    pending: Pending,
    top: int,
    blocks: int,
) -> None:
    """Split the blocks that are pending until each block is a maximal end component.

    A block is split into its strong components, the choices that may leave them are lost, and only
    components that lost any are looked at again (de Alfaro 1997, section 3.4). Before all of such a
    component is searched, small sets that cannot be left any more are split off: each holds a state
    that lost a choice, and is found from there at the cost of its own size. Without that, nested
    rings that break one by one would take quadratic time (the idea is the lock-step search of
    Chatterjee and Henzinger 2011; here budgets that grow take turns).

    There are `blocks` blocks, and `top` of them are pending.
    """
    begin, end, lost = partition.begin, partition.end, choices.lost
    mark = 0
    while top:
        top -= 1
        own, first, num_lost = pending.block[top], pending.first_lost[top], pending.last_lost[top]
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
                pending.block[top] = blocks
                pending.first_lost[top] = pending.last_lost[top] = num_lost
                top += 1
            blocks += 1
            budget = FIRST_BUDGET
        if end[own] - begin[own] < 2:
            continue
        count = strong_components(graph, choices.usable, partition, own, search)
        if count == 1:
            continue
        new = blocks
        blocks = split_by_components(partition, search, own, blocks)
        top = lose_in_each(graph, partition, choices, pending, top, own, new, count, first)
