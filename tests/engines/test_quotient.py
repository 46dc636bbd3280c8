"""Collapsed end components: what reaches what, and with which probability, stays as it was."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.graph.mec import EndComponents, maximal_end_components
from engines.graph.quotient import collapse
from engines.model.explicit import ExplicitModel
from tests.engines import graph_models, models, reference


def reach_probabilities(model, target):
    """The maximal probabilities to reach the target, over all memoryless strategies."""
    rows = reference.rows_of(model.matrix)
    best = np.zeros(model.num_states)
    for strategy in itertools.product(*reference.choices_of(model)):
        edges = np.zeros((model.num_states, model.num_states))
        for state, row in enumerate(strategy):
            for after, probability in rows[row].items():
                edges[state, after] = probability
        best = np.maximum(best, chain_probabilities(edges, target))
    return best


def chain_probabilities(edges, target):
    can = target.copy()
    for _ in edges:
        can = can | (edges @ can > 0)
    unknown = can & ~target
    values = target.astype(float)
    inner = np.eye(int(unknown.sum())) - edges[np.ix_(unknown, unknown)]
    values[unknown] = np.linalg.solve(inner, edges[unknown] @ target)
    return values


def few_strategies(model):
    return np.prod([float(len(rows)) for rows in reference.choices_of(model)]) <= 250


def small_models(count):
    candidates = (graph_models.random_model(seed) for seed in itertools.count())
    return itertools.islice(filter(few_strategies, candidates), count)


def test_maximal_reachability_probabilities_stay():
    collapsed = 0
    for number, model in enumerate(small_models(400)):
        _, target = graph_models.random_masks(number, model.num_states)
        components = maximal_end_components(model, ~target)
        quotient = collapse(model, components)
        collapsed += quotient.model.num_states < model.num_states
        new_target = np.zeros(quotient.model.num_states, dtype=np.bool_)
        new_target[quotient.state_of[target]] = True
        np.testing.assert_allclose(
            reach_probabilities(quotient.model, new_target)[quotient.state_of],
            reach_probabilities(model, target),
            atol=1e-12,
            err_msg=f"{number}",
        )
    assert collapsed > 50


def without(model, components):
    """The quotient's rows by plain loops: new state, old choice, successors."""
    members = {}
    for state, label in enumerate(components.labels.tolist()):
        members.setdefault(("component", label) if label >= 0 else ("state", state), []).append(
            state
        )
    blocks = sorted(members.values(), key=min)
    state_of = {state: number for number, block in enumerate(blocks) for state in block}
    rows, choices = reference.rows_of(model.matrix), reference.choices_of(model)
    expected = []
    for number, block in enumerate(blocks):
        left = [row for s in block for row in choices[s] if not components.choices[row]]
        if not left:
            expected.append((number, -1, {number: 1.0}))
        for row in left:
            after = {}
            for column, value in rows[row].items():
                after[state_of[column]] = after.get(state_of[column], 0.0) + value
            expected.append((number, row, after))
    return expected, [state_of[state] for state in range(model.num_states)]


def test_the_quotient_is_that_of_plain_loops():
    for seed in range(500):
        model = graph_models.random_model(seed, most=20)
        rng = np.random.default_rng(seed)
        allowed = None if seed % 2 else rng.random(model.matrix.num_rows) < 0.7
        components = maximal_end_components(model, choices=allowed)
        quotient = collapse(model, components)
        quotient.model.check()
        expected, state_of = without(model, components)
        np.testing.assert_array_equal(quotient.state_of, state_of)
        np.testing.assert_array_equal(quotient.choice_of, [choice for _, choice, _ in expected])
        rows = reference.rows_of(quotient.model.matrix)
        owners = [
            state
            for state, choices in enumerate(reference.choices_of(quotient.model))
            for _ in choices
        ]
        assert owners == [state for state, _, _ in expected]
        for row, (_, _, after) in zip(rows, expected, strict=True):
            assert row == pytest.approx(after)
        # Entries are in order, one a place, none of them 0.
        assert [list(row) for row in rows] == [sorted(row) for row in rows]
        assert sum(len(row) for row in rows) == quotient.model.matrix.num_entries


def test_nothing_can_be_kept_to_in_a_quotient_but_the_loops_that_were_added():
    for seed in range(300):
        model = graph_models.random_model(seed, most=20)
        quotient = collapse(model, maximal_end_components(model))
        again = maximal_end_components(quotient.model)
        np.testing.assert_array_equal(again.choices, quotient.choice_of == -1)


def test_without_components_the_model_stays():
    model = models.random_mdp(5)
    nothing = EndComponents(
        np.full(model.num_states, -1, dtype=np.int32),
        0,
        np.zeros(model.matrix.num_rows, dtype=np.bool_),
    )
    quotient = collapse(model, nothing)
    np.testing.assert_array_equal(quotient.state_of, np.arange(model.num_states))
    np.testing.assert_array_equal(quotient.choice_of, np.arange(model.matrix.num_rows))
    for name in ("row_offsets", "columns", "values"):
        np.testing.assert_array_equal(
            getattr(quotient.model.matrix, name), getattr(model.matrix, name)
        )


def test_a_small_quotient_by_hand():
    model = models.end_components()
    model = ExplicitModel(model.kind, model.matrix, model.row_group_offsets, models.mask(5, [1]))
    quotient = collapse(model, maximal_end_components(model))
    np.testing.assert_array_equal(quotient.state_of, [0, 0, 1, 2, 3])
    np.testing.assert_array_equal(quotient.choice_of, [1, 3, 5, -1, -1])
    np.testing.assert_array_equal(quotient.model.row_group_offsets, [0, 2, 3, 4, 5])
    np.testing.assert_array_equal(quotient.model.initial_states, [True, False, False, False])
    assert reference.rows_of(quotient.model.matrix) == [
        {2: 0.5, 3: 0.5},
        {1: 1.0},
        {0: 0.5, 2: 0.25, 3: 0.25},
        {2: 1.0},
        {3: 1.0},
    ]


def test_chains_are_refused_by_name():
    chain = models.line(3)
    nothing = EndComponents(np.full(3, -1), 0, np.zeros(3, dtype=np.bool_))
    with pytest.raises(UnsupportedError, match="DTMC"):
        collapse(chain, nothing)
