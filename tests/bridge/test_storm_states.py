"""States and choices in PRISM's order, and rates without rounding."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.storm.states import (
    choice_order,
    inverse,
    restored_rates,
    sorted_matrix,
    state_order,
)
from engines.model.csr import CsrMatrix

EPSILON = float(np.finfo(np.float64).eps)


@st.composite
def valuations(draw):
    """Return the values of some variables in some states, none of these twice."""
    count = draw(st.integers(1, 5))
    kinds = [
        draw(
            st.sampled_from(
                [st.booleans(), st.integers(-2, 2), st.integers(-(2**40), 2**40)],
            )
        )
        for _ in range(count)
    ]
    return draw(st.lists(st.tuples(*kinds), min_size=1, max_size=30, unique=True))


@given(valuations())
def test_states_are_sorted_as_their_tuples(rows):
    columns = {
        str(number): np.array(column) for number, column in enumerate(zip(*rows, strict=True))
    }
    order = state_order(columns, len(rows))
    assert [rows[place] for place in order] == sorted(rows)
    np.testing.assert_array_equal(inverse(order)[order], np.arange(len(rows)))


def test_a_model_without_variables_has_its_state():
    np.testing.assert_array_equal(state_order({}, 1), [0])


@given(st.data())
def test_choices_follow_states_and_actions(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    groups = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    states = np.array(data.draw(st.permutations(range(len(sizes)))), np.int32)
    codes = st.lists(st.integers(0, 2), min_size=int(groups[-1]), max_size=int(groups[-1]))
    actions = np.array(data.draw(codes), np.int32)
    ranks = data.draw(st.permutations(range(3)))
    order, new_groups = choice_order(groups, states, actions, ranks)
    expected: list[int] = []
    ends = [0]
    for state in states:
        own = range(groups[state], groups[state + 1])
        expected += sorted(own, key=lambda row: ranks[actions[row]])
        ends.append(len(expected))
    assert order.tolist() == expected
    assert new_groups.tolist() == ends


@given(st.integers(0, 2**32 - 1))
def test_a_matrix_in_a_new_order_is_the_same_matrix(seed):
    random = np.random.default_rng(seed)
    rows, columns = int(random.integers(1, 12)), int(random.integers(1, 9))
    dense = random.random((rows, columns)) * (random.random((rows, columns)) < 0.5)
    offsets = np.concatenate(([0], np.cumsum((dense > 0).sum(axis=1)))).astype(np.int32)
    places = [random.permutation(np.flatnonzero(row)) for row in dense]
    flat = np.concatenate(places).astype(np.int32)
    row_of_entry = np.repeat(np.arange(rows), np.diff(offsets))
    matrix = CsrMatrix(offsets, flat, dense[row_of_entry, flat], columns)
    row_order = random.permutation(rows).astype(np.int32)
    state_order_ = random.permutation(columns).astype(np.int32)
    found = sorted_matrix(matrix, row_order, state_order_)
    again = np.zeros_like(dense)
    again[found.row_of_entry(), found.columns] = found.values
    np.testing.assert_array_equal(again, dense[row_order][:, state_order_])
    starts = found.row_offsets[1:-1]
    rising = np.diff(found.columns) > 0
    assert np.all(rising | np.isin(np.arange(1, len(found.columns)), starts))


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1))
def test_rates_come_back_from_probabilities(seed):
    """A few short decimals, divided by sums and multiplied again, are what they were."""
    random = np.random.default_rng(seed)
    few = np.unique(random.integers(1, 10**6, 6) / 1000.0)
    rates = random.choice(few, 500)
    exits = rates + random.choice(few, 500) * random.integers(0, 5, 500)
    rounded = rates / exits * exits
    np.testing.assert_array_equal(restored_rates(np.concatenate((rounded, few)))[:500], rates)


@given(st.lists(st.floats(1e-300, 1e300), min_size=1), st.integers(0, 2**32 - 1))
def test_no_rate_moves_by_more_than_a_few_last_bits(values, seed):
    random = np.random.default_rng(seed)
    rates = np.repeat(np.array(values), 3)
    rates *= 1 + EPSILON * random.integers(-6, 7, len(rates))
    found = restored_rates(rates)
    np.testing.assert_allclose(found, rates, rtol=4.5 * EPSILON, atol=0)
    assert np.isin(found, rates).all()


def test_rates_that_differ_are_left_alone():
    rates = np.array([1.0, 1.0 + 16 * EPSILON, 2.0, 0.0, 1e-12])
    np.testing.assert_array_equal(restored_rates(rates), rates)
    assert restored_rates(np.empty(0)).size == 0
