"""Compiled searches of graphs: plain loops over rows of successors are the oracle."""

from __future__ import annotations

import ctypes
from itertools import chain, pairwise

import numpy as np
import pytest

from engines.host import graphs
from engines.host.compiled.library import MASKS, Function
from engines.host.graphs import HostGraph

WIDTHS = {
    "narrow": (np.int32, np.int32),
    "wide offsets": (np.int64, np.int32),
    "wide": (np.int64, np.int64),
    "without signs": (np.uint32, np.uint32),
}
NO_ENTRIES = np.zeros(0, dtype=np.int32)


class Plain:
    """The choices of each state, as lists of successors; some have none."""

    def __init__(self, choices):
        self.choices = choices
        self.rows = [row for of_state in choices for row in of_state]
        self.owner = [state for state, of_state in enumerate(choices) for _ in of_state]
        self.size = len(choices)

    def closed(self, goal, through, joins):
        """Add states of `through` whose choices, seen as which enter the set, join it."""
        found = list(goal)
        while True:
            more = [
                state
                for state in range(self.size)
                if through[state]
                and not found[state]
                and joins([any(found[after] for after in row) for row in self.choices[state]])
            ]
            if not more:
                return found
            for state in more:
                found[state] = True

    def reached_from(self, sources):
        found = list(sources)
        for _ in range(self.size):
            for state, rows in enumerate(self.choices):
                for after in chain.from_iterable(rows if found[state] else []):
                    found[after] = True
        return found

    def may_reach(self, goal, through):
        return self.closed(goal, through, any)

    def must_approach(self, goal, through):
        return self.closed(goal, through, lambda entering: bool(entering) and all(entering))

    def can_force(self, goal, through):
        """Prob1E as a nested fixpoint: de Alfaro (1997), section 3.4."""
        outer = [True] * self.size
        while True:
            safe = Plain(
                [[row for row in rows if all(outer[s] for s in row)] for rows in self.choices]
            )
            inner = safe.may_reach([g and o for g, o in zip(goal, outer, strict=True)], through)
            if inner == outer:
                return outer
            outer = inner

    def strong_components(self, restrict, rows=None):
        """Label states by the smallest ones that they reach and are reached from."""
        rows = self.choices if rows is None else rows
        inside = Plain([[[t for t in row if restrict[t]] for row in of_state] for of_state in rows])
        one = np.eye(self.size, dtype=bool)
        reached = np.array([inside.reached_from(one[s]) for s in range(self.size)]).reshape(
            self.size, self.size
        )
        mutual = reached & reached.T
        first = [int(np.flatnonzero(mutual[s])[0]) if restrict[s] else -1 for s in range(self.size)]
        names = sorted(set(first) - {-1})
        return [names.index(s) if s >= 0 else -1 for s in first], len(names)

    def end_components(self, restrict, usable):
        kept = [bool(use) and len(row) > 0 for use, row in zip(usable, self.rows, strict=True)]
        inside = list(restrict)
        while True:
            number = iter(range(len(self.rows)))
            rows = [[row for row in of if kept[next(number)]] for of in self.choices]
            labels, count = self.strong_components(inside, rows)
            stays = [
                keep and labels[s] >= 0 and all(labels[t] == labels[s] for t in row)
                for keep, row, s in zip(kept, self.rows, self.owner, strict=True)
            ]
            left = [
                any(k for k, s in zip(stays, self.owner, strict=True) if s == state)
                for state in range(self.size)
            ]
            if stays == kept and left == inside:
                return labels, count, kept
            kept, inside = stays, left


def given_to_library(plain, widths="narrow"):
    offset_type, column_type = WIDTHS[widths]
    groups = np.cumsum([0, *map(len, plain.choices)]).astype(np.int32)
    is_chain = all(len(rows) == 1 for rows in plain.choices)
    offsets = np.cumsum([0, *map(len, plain.rows)]).astype(offset_type)
    columns = np.array(list(chain.from_iterable(plain.rows)), dtype=column_type)
    return HostGraph(plain.size, None if is_chain else groups, offsets, columns)


def some_graph(seed, most=9):
    """A random graph: a chain for even seeds, else of up to three choices; some lead nowhere."""
    random = np.random.default_rng(seed)
    size = int(random.integers(1, most))

    def row():
        return random.integers(0, size, random.integers(0, 4)).tolist()

    each = [1 if seed % 2 == 0 else int(random.integers(0, 4)) for _ in range(size)]
    return Plain([[row() for _ in range(number)] for number in each]), random


@pytest.mark.parametrize("widths", WIDTHS)
def test_closures_are_those_of_plain_loops(widths):
    for seed in range(300):
        plain, random = some_graph(seed)
        found = given_to_library(plain, widths)
        goal, through = random.random(plain.size) < 0.2, random.random(plain.size) < 0.8
        before = goal.copy(), through.copy()
        assert found.reached_from(goal).tolist() == plain.reached_from(goal.tolist()), seed
        for name in ("may_reach", "must_approach", "can_force"):
            expected = getattr(plain, name)(goal.tolist(), through.tolist())
            closed = getattr(found, name)(goal, through)
            assert closed.tolist() == expected, (seed, name)
            assert closed.dtype == np.bool_
        np.testing.assert_array_equal((goal, through), before)


@pytest.mark.parametrize("widths", WIDTHS)
def test_an_only_bottom_component_is_one(widths):
    seen = known = 0
    for seed in range(300):
        plain, _ = some_graph(seed)
        everything = [True] * plain.size
        labels, count = plain.strong_components(everything)
        left = [False] * count
        for row, state in zip(plain.rows, plain.owner, strict=True):
            left[labels[state]] |= any(labels[after] != labels[state] for after in row)
        bottom = given_to_library(plain, widths).only_bottom()
        seen += bottom is not None
        if bottom is not None:
            assert left.count(False) == 1, seed
            assert bottom.tolist() == [label == left.index(False) for label in labels], seed
        for origin in range(plain.size):
            if all(given_to_library(plain, widths).reached_from(np.arange(plain.size) == origin)):
                again = given_to_library(plain, widths).only_bottom(origin)
                np.testing.assert_array_equal(again, bottom)
                known += bottom is not None
    assert seen > 10
    assert known > 10


@pytest.mark.parametrize("widths", WIDTHS)
def test_a_ring_is_its_only_bottom_component(widths):
    ring = Plain([[[(state + 1) % 40]] for state in range(40)])
    assert given_to_library(ring, widths).only_bottom().all()
    assert given_to_library(ring, widths).only_bottom(39).all()


@pytest.mark.parametrize("widths", WIDTHS)
def test_components_are_those_of_plain_loops(widths):
    for seed in range(100):
        plain, random = some_graph(seed)
        found, within = given_to_library(plain, widths), random.random(plain.size) < 0.8
        labels, count = found.strong_components(within)
        assert (labels.tolist(), count) == plain.strong_components(within.tolist()), seed
        assert labels.dtype == np.int32
        left, entered = [False] * count, [set() for _ in range(count)]
        for row, state in zip(plain.rows, plain.owner, strict=True):
            own = labels[state]
            if own >= 0:
                left[own] |= any(labels[after] != own for after in row)
                entered[own] |= {int(labels[after]) for after in row} - {-1, int(own)}
        assert found.components_left(labels, count).tolist() == left, seed

        def level(component, entered=entered):
            return 1 + max((level(other) for other in entered[component]), default=-1)

        order = sorted(range(count), key=lambda component: (level(component), component))
        assert found.condensation_order(labels, count).tolist() == order, seed
        states, bounds = found.ordered_components(within)
        assert sorted(states.tolist()) == np.flatnonzero(within).tolist()
        assert len(bounds) == count + 1
        place = {}
        for first, behind in pairwise(bounds):
            (own,) = set(labels[states[first:behind]].tolist())
            assert entered[own] <= set(place), seed
            place[own] = first


@pytest.mark.parametrize("budget", [1, 2, 32])
@pytest.mark.parametrize("widths", WIDTHS)
def test_end_components_are_those_of_plain_loops(widths, budget, monkeypatch):
    monkeypatch.setattr(graphs, "FIRST_BUDGET", budget)
    for seed in range(100):
        plain, random = some_graph(seed)
        within = random.random(plain.size) < 0.9
        usable = random.random(len(plain.rows)) < [1.0, 0.8][seed // 2 % 2]
        before = usable.copy()
        labels, count, kept = given_to_library(plain, widths).end_components(within, usable)
        expected = plain.end_components(within.tolist(), usable.tolist())
        assert (labels.tolist(), count, kept.tolist()) == expected, seed
        assert (labels.dtype, kept.dtype) == (np.int32, np.bool_)
        np.testing.assert_array_equal(usable, before)


def test_a_choice_that_leads_nowhere_forces_nothing():
    """State 0 may go nowhere, or to the goal or a trap: what is left of it is no strategy."""
    plain = Plain([[[], [1, 2]], [[1]], [[2]]])
    goal, everything = np.array([False, True, False]), np.ones(3, dtype=np.bool_)
    forced = given_to_library(plain).can_force(goal, everything)
    np.testing.assert_array_equal(forced, [False, True, False])


def test_no_states_and_no_edges():
    empty = HostGraph(0, None, np.zeros(1, dtype=np.int32), NO_ENTRIES)
    nothing = np.zeros(0, dtype=np.bool_)
    assert empty.can_force(nothing, nothing).shape == (0,)
    assert empty.strong_components(nothing)[1] == 0
    assert empty.end_components(nothing, nothing)[1] == 0
    assert empty.condensation_order(empty.strong_components(nothing)[0], 0).shape == (0,)
    lone = HostGraph(3, None, np.zeros(4, dtype=np.int32), NO_ENTRIES)
    some = np.array([True, False, True])
    np.testing.assert_array_equal(lone.reached_from(some), some)
    labels, count = lone.strong_components(some)
    assert (labels.tolist(), count) == ([0, -1, 1], 2)
    assert not lone.components_left(labels, count).any()
    assert lone.end_components(some, some)[1] == 0


def test_arrays_that_do_not_fit_the_graph_are_refused():
    plain, _ = some_graph(1)
    found = given_to_library(plain)
    states, wrong = np.ones(plain.size, dtype=np.bool_), np.ones(plain.size + 1, dtype=np.bool_)
    rows = np.ones(len(plain.rows), dtype=np.bool_)
    for call in (
        lambda: found.reached_from(wrong),
        lambda: found.may_reach(wrong, states),
        lambda: found.must_approach(states, wrong),
        lambda: found.can_force(states, wrong),
        lambda: found.can_force(wrong, states),
        lambda: found.strong_components(wrong),
        lambda: found.end_components(wrong, rows),
        lambda: found.end_components(states, np.append(rows, True)),
        lambda: found.ordered_components(wrong),
        lambda: found.ordered_components(states, np.append(rows, True)),
        lambda: found.components_left(np.zeros(plain.size + 1, dtype=np.int32), 1),
        lambda: found.condensation_order(np.full(plain.size, 2, dtype=np.int32), 2),
    ):
        with pytest.raises(ValueError, match=r"an array of shape|a label of"):
            call()
    for groups in (None, np.zeros(2, dtype=np.int32)):
        with pytest.raises(ValueError, match="3 states do not have 2 rows"):
            HostGraph(3, groups, np.zeros(3, dtype=np.int32), NO_ENTRIES)


def test_masks_may_be_read_only_or_strided():
    plain, random = some_graph(4)
    found, goal = given_to_library(plain), random.random(plain.size) < 0.5
    expected = found.may_reach(goal, ~goal)
    strided = np.stack((~goal, goal), axis=1)[:, 0]
    strided.flags.writeable = False
    np.testing.assert_array_equal(found.may_reach(goal, strided), expected)
    fixed = goal.copy()
    fixed.flags.writeable = False
    np.testing.assert_array_equal(found.may_reach(fixed, ~goal), expected)


def test_a_mask_of_numbers_is_refused_by_the_binding():
    function = Function("pg_release", None, MASKS)
    with pytest.raises(ctypes.ArgumentError, match="contiguous array of bool or uint8"):
        function(np.zeros(2))


def test_a_long_path_needs_no_stack():
    size = 300_000
    after = np.minimum(np.arange(1, size + 1), size - 1).astype(np.int32)
    path = HostGraph(size, None, np.arange(size + 1, dtype=np.int32), after)
    everything = np.ones(size, dtype=np.bool_)
    states, bounds = path.ordered_components(everything)
    np.testing.assert_array_equal(states, np.arange(size)[::-1])
    np.testing.assert_array_equal(bounds, np.arange(size + 1))
    assert path.end_components(everything, everything)[1] == 1
