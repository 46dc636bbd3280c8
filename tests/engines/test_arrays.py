"""What is asked of whole arrays, long ones in parts."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from engines.arrays import LOOKED_AT, SHARED_OUT, each_once, extremes, of_parts
from engines.graph.components import Components
from engines.model.decided import decided_complements, decided_values

LONG = LOOKED_AT * SHARED_OUT + 3


@pytest.mark.parametrize("size", [1, LOOKED_AT, LOOKED_AT + 1, LONG])
def test_extremes_are_those_of_all_parts(size):
    values = np.random.default_rng(size).normal(size=size)
    assert extremes(values) == (values.min(), values.max())
    values[size // 2], values[-1] = -np.inf, 5.0
    assert extremes(values) == (values.min(), max(values.max(), 5.0))


@pytest.mark.parametrize("place", [0, LOOKED_AT, LONG - 1])
def test_extremes_with_what_is_no_number_are_none(place):
    values = np.ones(LONG)
    values[place] = np.nan
    assert np.isnan(extremes(values)).all()


def test_nothing_has_infinite_extremes():
    assert extremes(np.zeros(0)) == (np.inf, -np.inf)


def test_parts_are_looked_at_by_several_threads_once_each():
    values, seen = np.arange(LONG), set()

    def first_of(part):
        seen.add(threading.get_ident())
        return int(part[0])

    assert list(of_parts(values, first_of)) == list(range(0, LONG, LOOKED_AT))
    assert threading.get_ident() not in seen


def test_a_repeated_number_is_looked_at_once():
    repeated = np.broadcast_to(np.float64(0.25), 10)
    assert each_once(repeated).tolist() == [0.25]
    assert each_once(repeated[2:]).tolist() == [0.25]
    assert len(each_once(np.full(10, 0.25))) == 10


def test_repeated_values_are_decided_as_others_are():
    for value in (0.0, 0.25, 1.0, np.inf):
        for known in (True, False):
            repeated = np.broadcast_to(value, 7), np.broadcast_to(known, 7)
            written_out = tuple(np.array(each) for each in repeated)
            assert decided_values(*repeated) == decided_values(*written_out)
            assert decided_values(repeated[0], written_out[1]) == decided_values(*written_out)
            decided = decided_values(*written_out)
            found = decided_complements(repeated[0], decided)
            assert found == decided_complements(written_out[0], decided)


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, -1, 0], [1, 0, 1], [-1, -1, -1]])
def test_members_are_the_states_of_a_component(labels):
    components = Components(np.array(labels, dtype=np.int32), max(labels) + 1)
    assert components.everywhere == (-1 not in labels)
    wanted = np.ones(components.count, dtype=np.bool_)
    found = {label: states.tolist() for label, states in components.members(wanted)}
    numbers = range(components.count)
    assert found == {n: [s for s, label in enumerate(labels) if label == n] for n in numbers}
