"""Compiled loops of upper bounds: plain loops with heapq are the oracle, to the last bit."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
import pytest

from engines.host.products import transposed
from engines.host.reward_bounds import dijkstra_sweep, probability_of_no_return
from engines.model.csr import CsrMatrix

TYPES = {
    "narrow": (np.int32, np.int32),
    "wide offsets": (np.int64, np.int32),
    "wide": (np.int64, np.int64),
}
WIDE = pytest.mark.parametrize("wide", TYPES)
SEEDS = pytest.mark.parametrize("seed", range(8))
STATES = 40


class Graph:
    """Random choices of few distinct probabilities and rewards, so that many of them tie."""

    def __init__(self, seed, wide="narrow", columns=None):
        random = np.random.default_rng(seed)
        self.goal = np.zeros(STATES, dtype=np.bool_)
        self.goal[[0, *random.choice(STATES, 5, replace=False)]] = True
        self.states = np.flatnonzero(~self.goal)
        each = random.integers(1, 4, len(self.states))
        self.groups = np.concatenate([[0], np.cumsum(each)])
        self.owner = np.repeat(self.states, each)
        rows = len(self.owner)
        lengths = random.integers(1, 5, rows)
        offset_type, column_type = TYPES[wide]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(offset_type)
        if columns is None:
            columns = random.integers(0, STATES, offsets[-1])
        values = random.choice([0.0, 0.125, 0.25, 0.1], offsets[-1], p=[0.1, 0.3, 0.3, 0.3])
        self.matrix = CsrMatrix(offsets, columns[: offsets[-1]].astype(column_type), values, STATES)
        self.into = transposed(self.matrix, values)
        self.rewards = random.choice([0.0, 1.0, 2.0], rows)
        self.component = np.where(self.goal, -1, random.integers(0, 4, STATES))

    def entering(self, state):
        """Yield the rows that enter a state, each with its probability."""
        for entry in range(self.into.row_offsets[state], self.into.row_offsets[state + 1]):
            yield int(self.into.columns[entry]), float(self.into.values[entry])

    def entries(self, row):
        """Yield the states that a row leads to, each with its probability."""
        for entry in range(self.matrix.row_offsets[row], self.matrix.row_offsets[row + 1]):
            yield int(self.matrix.columns[entry]), float(self.matrix.values[entry])


def plain_dijkstra(graph):
    """Return the settled states in their order beside what the sweep returns."""
    reached, cost = graph.goal.astype(float), np.zeros(STATES)
    chosen, best, queue, settled = {}, {}, [], []
    known, paid = [0.0] * len(graph.owner), graph.rewards.tolist()

    def offer(row):
        state = int(graph.owner[row])
        candidate = (1.0 - known[row], paid[row])
        if state not in chosen or candidate < best[state]:
            best[state], chosen[state] = candidate, row
            heappush(queue, (*candidate, state))

    for state in np.flatnonzero(graph.goal):
        for row, value in graph.entering(state):
            known[row] += value
    for row in range(len(graph.owner)):
        if known[row] > 0.0:
            offer(row)
    while queue:
        source = heappop(queue)[2]
        if source in settled:
            continue
        settled.append(source)
        reached[source], cost[source] = known[chosen[source]], paid[chosen[source]]
        for row, value in graph.entering(source):
            if graph.owner[row] not in settled and value != 0.0:
                known[row] += value * reached[source]
                paid[row] += value * cost[source]
                offer(row)
    rows = np.array([chosen.get(state, -1) for state in range(STATES)])
    return settled, reached, cost, rows


@SEEDS
@WIDE
def test_states_are_settled_in_the_order_of_a_heap(seed, wide):
    graph = Graph(seed, wide)
    settled, *expected = plain_dijkstra(graph)
    found = dijkstra_sweep(graph.into, graph.owner, graph.goal, graph.rewards)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(settled) > 10


def test_of_equal_candidates_the_smaller_state_is_settled_first():
    """States 1 and 2 reach the goal alike: state 3 keeps the row into that which comes first."""
    matrix = CsrMatrix(np.arange(5), np.array([0, 0, 2, 1]), np.array([0.5, 0.5, 1.0, 1.0]), 4)
    owner, goal = np.array([1, 2, 3, 3]), np.array([True, False, False, False])
    into = transposed(matrix, matrix.values)
    reached, cost, chosen = dijkstra_sweep(into, owner, goal, np.zeros(4))
    assert chosen.tolist() == [-1, 0, 1, 3]
    assert reached.tolist() == [1.0, 0.5, 0.5, 0.5]
    assert not cost.any()


@SEEDS
@WIDE
def test_layers_bound_what_never_returns(seed, wide):
    # Towards smaller states, as a rule, so that there are layers.
    random = np.random.default_rng(seed)
    graph = Graph(seed, wide)
    rows = np.repeat(graph.owner, graph.matrix.row_lengths())
    graph = Graph(seed, wide, np.maximum(rows - random.integers(1, 8, len(rows)), 0))
    level = {int(state): 0 for state in np.flatnonzero(graph.goal)}
    layer = 0
    while True:
        layer += 1
        fresh = [
            int(state)
            for group, state in enumerate(graph.states)
            if state not in level
            and all(
                any(after in level and value > 0.0 for after, value in graph.entries(row))
                for row in range(graph.groups[group], graph.groups[group + 1])
            )
        ]
        if not fresh:
            break
        level |= dict.fromkeys(fresh, layer)
    expected = np.zeros(STATES)
    for state in sorted(set(level) - set(np.flatnonzero(graph.goal)), key=level.__getitem__):
        sums = [1.0]
        for row in np.flatnonzero(graph.owner == state):
            total = 0.0
            for after, value in graph.entries(row):
                if after in level and level[after] < level[state]:
                    again = graph.component[after] == graph.component[state]
                    total += value * (expected[after] if again else 1.0)
            sums.append(total)
        expected[state] = min(sums)
    given = (graph.into, graph.owner, graph.goal, graph.component, graph.matrix, graph.groups)
    np.testing.assert_array_equal(probability_of_no_return(*given), expected)
    assert max(level.values()) > 2


def test_what_does_not_fit_is_refused():
    graph = Graph(0)
    into, owner, goal = graph.into, graph.owner, graph.goal
    with pytest.raises(ValueError, match="states and"):
        dijkstra_sweep(into, owner, goal[1:], graph.rewards)
    with pytest.raises(ValueError, match="rewards"):
        dijkstra_sweep(into, owner, goal, graph.rewards[1:])
    with pytest.raises(ValueError, match="rows of states"):
        dijkstra_sweep(into, owner + STATES, goal, graph.rewards)
    rest = (graph.component, graph.matrix)
    for groups in (graph.groups[:-1], graph.groups[1:], np.append(graph.groups, graph.groups[-1])):
        with pytest.raises(ValueError, match="are wanted"):
            probability_of_no_return(into, owner, goal, *rest, groups)
    with pytest.raises(ValueError, match="are wanted"):
        probability_of_no_return(into, owner, goal, graph.component[1:], *rest[1:], graph.groups)
