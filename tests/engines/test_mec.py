"""Maximal end components, against all sets of states, a plain refinement and published counts."""

from __future__ import annotations

import time

import numpy as np
import pytest

from bridge.files.umb import read_umb
from engines.errors import UnsupportedError
from engines.graph.mec import end_component_states, maximal_end_components
from engines.host import graphs
from tests.engines import graph_models, graph_oracles, models, reference
from tests.engines.published import FOLDER
from tests.engines.test_components import PUBLISHED, published


def staying(model, labels, allowed=None):
    """Which choices stay in their state's component, by plain loops."""
    rows = reference.rows_of(model.matrix)
    found = np.zeros(len(rows), dtype=np.bool_)
    for state, choices in enumerate(reference.choices_of(model)):
        for row in choices:
            inside = all(labels[after] == labels[state] for after in rows[row])
            found[row] = labels[state] >= 0 and inside and (allowed is None or allowed[row])
    return found


def some_choices(seed, model):
    return np.random.default_rng(seed).random(model.matrix.num_rows) < 0.7


def test_components_are_the_largest_sets_that_can_be_kept_to():
    for seed in range(700):
        model = graph_models.random_model(seed)
        within, _ = graph_models.random_masks(seed, model.num_states)
        for restrict in (None, within):
            for allowed in (None, some_choices(seed, model)):
                found = maximal_end_components(model, restrict, allowed)
                expected = graph_oracles.maximal_end_components(model, restrict, allowed)
                assert graph_oracles.sets_of(found.labels, found.count) == expected, seed
                np.testing.assert_array_equal(
                    found.choices, staying(model, found.labels, allowed), f"{seed}"
                )


def larger_models():
    yield from (graph_models.random_model(seed, most=60) for seed in range(150))
    homes = (lambda i: 0 * i, lambda i: i // 2, lambda i: np.maximum(i - 1, 0))
    for size in (3, 17, 90):
        yield from (graph_models.nested_rings(size, home) for home in homes)
        yield graph_models.crumbling_line(size)
    yield from (graph_models.power_law(60, seed) for seed in range(20))
    yield models.end_components()


@pytest.fixture(scope="module")
def refined():
    """Larger models, the choices allowed, and the components and choices that plain loops find."""
    cases = []
    for number, model in enumerate(larger_models()):
        allowed = None if number % 3 else some_choices(number, model)
        components = graph_oracles.refined_components(model, allowed=allowed)
        labels = np.full(model.num_states, -1)
        for label, component in enumerate(components):
            labels[list(component)] = label
        cases.append((model, allowed, components, staying(model, labels, allowed)))
    return cases


# A budget of 1 and of 2 makes the search for small closed sets start on small models.
@pytest.mark.parametrize("budget", [1, 2, 3, None])
def test_the_refinement_agrees_on_larger_models(budget, refined, monkeypatch):
    if budget is not None:
        monkeypatch.setattr(graphs, "FIRST_BUDGET", budget)
    for number, (model, allowed, components, choices) in enumerate(refined):
        found = maximal_end_components(model, choices=allowed)
        assert graph_oracles.sets_of(found.labels, found.count) == components, number
        np.testing.assert_array_equal(found.choices, choices, str(number))


def test_two_components_and_what_leaves_them():
    found = maximal_end_components(models.end_components())
    np.testing.assert_array_equal(found.labels, [0, 0, 1, 2, 3])
    assert found.count == 4
    np.testing.assert_array_equal(found.choices, [1, 0, 1, 0, 1, 0, 1, 1])


def test_states_alone_are_those_of_the_components():
    for number, model in enumerate(larger_models()):
        some = np.arange(model.num_states) % 5 > 0
        for restrict in (None, some):
            found = maximal_end_components(model, restrict)
            states = end_component_states(model, restrict)
            assert states.count == found.count, number
            np.testing.assert_array_equal(states.labels, found.labels, str(number))
    with pytest.raises(UnsupportedError, match="DTMC"):
        end_component_states(models.line(3))


def test_a_stored_zero_leaves_nothing():
    model = graph_models.with_zeros(models.end_components(), np.random.default_rng(1))
    np.testing.assert_array_equal(maximal_end_components(model).labels, [0, 0, 1, 2, 3])


def test_nothing_is_kept_to_without_states_or_without_choices():
    model = models.random_mdp(3)
    for found in (
        maximal_end_components(model, np.zeros(model.num_states, dtype=np.bool_)),
        maximal_end_components(model, choices=np.zeros(model.matrix.num_rows, dtype=np.bool_)),
    ):
        assert found.count == 0
        assert (found.labels == -1).all()
        assert not found.choices.any()


def test_chains_are_refused_by_name():
    with pytest.raises(UnsupportedError, match="DTMC"):
        maximal_end_components(models.line(3))


@pytest.mark.parametrize(
    ("home", "bound"),
    [(lambda i: 0 * i, 5.0), (lambda i: i // 2, 5.0), (lambda i: np.maximum(i - 1, 0), 5.0)],
    ids=["to the first", "halfway", "one back"],
)
def test_rings_that_break_one_by_one_take_no_quadratic_time(home, bound):
    maximal_end_components(graph_models.nested_rings(50_000, home))
    model = graph_models.nested_rings(400_000, home)
    assert model.matrix.num_rows > 10**6
    started = time.perf_counter()
    found = maximal_end_components(model)
    assert time.perf_counter() - started < bound
    # Whoever steps on does not come back for sure, so that all that is left is to wait.
    assert found.count == model.num_states


def test_a_power_law_with_two_million_choices_takes_seconds():
    maximal_end_components(graph_models.power_law(40_000))
    model = graph_models.power_law(10**6)
    started = time.perf_counter()
    found = maximal_end_components(model)
    assert time.perf_counter() - started < 10.0
    # Kept to for ever: each state has a choice, and each choice stays.
    groups, matrix = model.row_group_offsets, model.matrix
    state_of = np.repeat(np.arange(model.num_states), np.diff(groups))
    assert (np.bincount(state_of[found.choices], minlength=len(groups) - 1) > 0).sum() == (
        found.labels >= 0
    ).sum()
    row = matrix.row_of_entry()
    same = found.labels[state_of[row]] == found.labels[matrix.columns]
    assert same[found.choices[row]].all()


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"needs published counts: no folder {FOLDER}")
@pytest.mark.parametrize(("name", "program", "constants"), PUBLISHED[:6])
def test_published_models_have_the_published_end_components(name, program, constants):
    found = maximal_end_components(read_umb(FOLDER / "models" / f"{name}.umb").model)
    expected = published(program, constants)
    assert (found.count, found.choices.sum()) == (expected["mecs"], expected["choices_in_mecs"])
