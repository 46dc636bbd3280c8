"""Rounds of PRISM's searches for probabilities 0 and 1, counted by its loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.graph.prob01 import prob0, prob1
from engines.graph.rounds import rounds_of_prob0, rounds_of_prob1
from engines.systems.one_sided import Direction
from tests.engines import models

MIN, MAX = Direction.MINIMISE, Direction.MAXIMISE


def random_mdp(rng, size):
    choices = [
        [models.distribution(rng, size, 3) for _ in range(rng.integers(1, 4))] for _ in range(size)
    ]
    return models.mdp(choices), choices


def joined(choices, states, through, inside, least):
    """The states of `through` with a row, or whose rows all lead into `states` and stay inside."""
    found = set()
    for state in through:
        rows = [not inside.isdisjoint(row) and set(row) <= inside for row in choices[state]]
        rows = [
            ok and not states.isdisjoint(row) for ok, row in zip(rows, choices[state], strict=True)
        ]
        if all(rows) if least else any(rows):
            found.add(state)
    return found


def loop(choices, start, target, through, inside, least):
    """Go round until nothing changes; return the rounds and the set."""
    states, rounds = set(start), 0
    while True:
        rounds += 1
        after = target | joined(choices, states, through, inside, least)
        if after == states:
            return rounds, states
        states = after


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32), st.integers(2, 14), st.sampled_from([MIN, MAX]))
def test_rounds_are_those_of_prisms_loops(seed, size, direction):
    rng = np.random.default_rng(seed)
    model, choices = random_mdp(rng, size)
    target, remain = rng.random(size) < 0.2, rng.random(size) < 0.8
    goal, through = set(np.flatnonzero(target)), set(np.flatnonzero(remain & ~target))
    least, everywhere = direction is MIN, set(range(size))
    rounds, reached = loop(choices, goal, goal, through, everywhere, least)
    assert rounds_of_prob0(model, remain, target, direction) == rounds
    assert set(np.flatnonzero(~prob0(model, remain, target, direction))) == reached
    # The explicit engine begins with all states, and each inner loop with the target.
    for on_diagrams in (False, True):
        kept, total = everywhere, 0
        if on_diagrams:
            kept = loop(choices, goal, goal, through, everywhere, False)[1]
        while True:
            start = set() if on_diagrams else goal
            rounds, found = loop(choices, start, goal, through, kept, least)
            total += rounds
            if found == kept:
                break
            kept = found
        counted = rounds_of_prob1(model, remain, target, direction, on_diagrams=on_diagrams)
        assert counted == total
        assert set(np.flatnonzero(prob1(model, remain, target, direction))) == kept


@pytest.mark.parametrize("on_diagrams", [False, True])
def test_a_chain_of_states_takes_a_round_each(on_diagrams):
    size = 9
    rows = [[{min(state + 1, size - 1): 1.0}] for state in range(size)]
    model, everywhere = models.mdp(rows), np.ones(size, dtype=bool)
    goal = models.mask(size, [size - 1])
    assert rounds_of_prob0(model, everywhere, goal, MAX) == size
    counted = rounds_of_prob1(model, everywhere, goal, MAX, on_diagrams=on_diagrams)
    assert counted == size + on_diagrams
