"""The loops behind upper bounds of expected rewards, on the host.

Each function runs as it stands, or compiled by `compiled`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from engines.formats.csr import FloatArray, IndexArray, MaskArray


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of this module compiled by numba.

    Parameters
    ----------
    function
        One that calls no other function of this module.
    """
    from numba import njit

    machine_code: Callable[..., Any] = njit(cache=True, error_model="numpy")(function)
    return machine_code


def dijkstra_sweep(
    into_offsets: IndexArray,
    into_rows: IndexArray,
    into_values: FloatArray,
    owner: IndexArray,
    goal: MaskArray,
    reached: FloatArray,
    cost: FloatArray,
    chosen: IndexArray,
    row_reached: FloatArray,
    row_cost: FloatArray,
) -> None:
    """Settle states in the order of the probability, then the cost, of getting to the goal.

    Parameters
    ----------
    into_offsets, into_rows, into_values
        The transposed matrix: which rows enter a state, and with which probability.
    owner
        Shape (rows,): the state of each row.
    goal
        Shape (states,): states without a cost.
    reached, cost
        Shape (states,), written: what a state's chosen row knew of getting to the goal when the
        state was settled: its probability and its cost. `reached` starts as 1 at the goal.
    chosen
        Shape (states,), written: the row of each settled state; −1 elsewhere.
    row_reached, row_cost
        Shape (rows,), scratch: zeros, and the rows' rewards.

    Notes
    -----
    McMahan, Likhachev and Gordon (2005), Bounded Real-Time Dynamic Programming, Dijkstra Sweep for
    Monotone Pessimistic Initialization.
    """
    size = len(goal)
    settled = goal.copy()
    best_missing = cost.copy()
    best_cost = cost.copy()
    queue = [(0.0, 0.0, 0)]
    queue.pop()
    for step in range(-1, size):
        # Rows that enter the goal are all updated before any of them is compared, as one step.
        if step < 0:
            for state in range(size):
                if goal[state]:
                    for entry in range(into_offsets[state], into_offsets[state + 1]):
                        row_reached[into_rows[entry]] += into_values[entry]
            for row in range(len(owner)):
                state = owner[row]
                if row_reached[row] > 0.0 and not settled[state]:
                    missing = 1.0 - row_reached[row]
                    first = chosen[state] < 0
                    less = missing < best_missing[state]
                    tied = missing == best_missing[state]
                    if first or less or (tied and row_cost[row] < best_cost[state]):
                        best_missing[state], best_cost[state] = missing, row_cost[row]
                        chosen[state] = row
                        heappush(queue, (missing, row_cost[row], state))
            continue
        while len(queue) > 0 and settled[queue[0][2]]:
            heappop(queue)
        if len(queue) == 0:
            return
        source = heappop(queue)[2]
        settled[source] = True
        reached[source] = row_reached[chosen[source]]
        cost[source] = row_cost[chosen[source]]
        for entry in range(into_offsets[source], into_offsets[source + 1]):
            row = into_rows[entry]
            state = owner[row]
            if settled[state] or into_values[entry] == 0.0:
                continue
            row_reached[row] += into_values[entry] * reached[source]
            row_cost[row] += into_values[entry] * cost[source]
            missing = 1.0 - row_reached[row]
            first = chosen[state] < 0
            less = missing < best_missing[state]
            tied = missing == best_missing[state]
            if first or less or (tied and row_cost[row] < best_cost[state]):
                best_missing[state], best_cost[state] = missing, row_cost[row]
                chosen[state] = row
                heappush(queue, (missing, row_cost[row], state))


def probability_of_no_return(
    into_offsets: IndexArray,
    into_rows: IndexArray,
    into_values: FloatArray,
    owner: IndexArray,
    goal: MaskArray,
    component: IndexArray,
    row_offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    group_offsets: IndexArray,
    group_of: IndexArray,
    level: IndexArray,
    never: FloatArray,
) -> None:
    """Bound from below the probability of never coming back to a state, under any strategy.

    Parameters
    ----------
    into_offsets, into_rows, into_values
        The transposed matrix: which rows enter a state, and with which probability.
    owner
        Shape (rows,): the state of each row.
    goal
        Shape (states,): the states that are left for good.
    component
        Shape (states,): the strongly connected component of each state; −1 at the goal.
    row_offsets, columns, values, group_offsets
        The matrix, and the rows of each group.
    group_of
        Shape (states,): the group of each state; −1 at the goal.
    level
        Shape (states,), written: the layer at which every row of a state leads into the layers
        before it; starts as 0 at the goal and −1 elsewhere, and stays −1 where that never happens.
    never
        Shape (states,), written; starts as 0.

    Notes
    -----
    Baier, Klein, Leuschner, Parker and Wunderlich (2017), Ensuring the Reliability of Your Model
    Checker: Interval Iteration for Markov Decision Processes, section 3, variant 2.
    """
    size = len(goal)
    queue = [0]
    queue.pop()
    for state in range(size):
        if goal[state]:
            queue.append(state)
    entered = [False] * len(owner)
    missing = [0] * size
    for row in range(len(owner)):
        missing[owner[row]] += 1
    head = 0
    while head < len(queue):
        source = queue[head]
        head += 1
        for entry in range(into_offsets[source], into_offsets[source + 1]):
            row = into_rows[entry]
            state = owner[row]
            if entered[row] or into_values[entry] == 0.0:
                continue
            entered[row] = True
            missing[state] -= 1
            if missing[state] == 0:
                level[state] = level[source] + 1
                queue.append(state)
    for place in range(len(queue)):
        state = queue[place]
        group = group_of[state]
        if group < 0:
            continue
        least = 1.0
        for row in range(group_offsets[group], group_offsets[group + 1]):
            total = 0.0
            for entry in range(row_offsets[row], row_offsets[row + 1]):
                after = columns[entry]
                if 0 <= level[after] < level[state]:
                    again = component[after] == component[state]
                    total += values[entry] * (never[after] if again else 1.0)
            least = min(least, total)
        never[state] = least
