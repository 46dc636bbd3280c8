"""Least numbers of steps to a set: those of plain loops, however deep the graph is."""

from __future__ import annotations

import numpy as np
import pytest

from engines.graph.distances import distances


def by_loops(sources, successors, goal):
    """Look at every edge for every distance."""
    found = np.where(goal, 0.0, np.inf)
    for distance in range(1, len(goal) + 1):
        for source, successor in zip(sources, successors, strict=True):
            if found[source] > distance and found[successor] < distance:
                found[source] = distance
    return found


@pytest.mark.parametrize("layers", [4_000, 3, 0])
@pytest.mark.parametrize("seed", range(20))
def test_distances_are_those_of_plain_loops(layers, seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 40))
    sources, successors = rng.integers(0, size, (2, int(rng.integers(0, 3 * size))))
    goal = rng.random(size) < rng.choice([0.0, 0.05, 0.5])
    found = distances(sources, successors, goal, most_layers=layers)
    np.testing.assert_array_equal(found, by_loops(sources, successors, goal))


@pytest.mark.parametrize("size", [3_000, 50_000])
def test_a_line_is_as_long_as_it_has_states(size):
    states = np.arange(size)
    found = distances(states[:-1], states[1:], states == size - 1)
    np.testing.assert_array_equal(found, size - 1 - states)
