"""Matrices that share little, expanded path by path: the same entries, in little memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from engines.diagrams.choices import choice_roots
from engines.diagrams.survey import Survey, survey
from engines.errors import InvalidModelError
from engines.host.expansion import walks
from engines.host.expansion.expand import expand_surveyed, expanded_bytes
from engines.host.expansion.walks import Walked, surveyed_or_walked, walked_up_to
from tests.engines.diagrams.expansion import expand_matrix
from tests.engines.diagrams.queue_diagrams import QueueDiagrams
from tests.engines.diagrams.random_diagrams import (
    RandomModel,
    diagram_of,
    numbering_of,
    random_model,
)

MANY = 10**9


def walked(model: RandomModel, *, transposed: bool = False) -> Walked:
    numbering = model.numbering.transposed() if transposed else model.numbering
    found = walked_up_to(MANY, model.diagram, numbering)
    assert found is not None
    return found


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_entries_are_those_of_the_function(seed, transposed):
    model = random_model(seed, levels=seed % 5, density=(0.1, 0.4, 0.9)[seed % 3])
    dense = model.dense[0].T if transposed else model.dense[0]
    found = walked(model, transposed=transposed)
    assert found.num_entries == np.count_nonzero(dense)
    matrix = expand_surveyed(found)
    rows, columns = np.nonzero(dense)
    np.testing.assert_array_equal(matrix.row_of_entry(), rows)
    np.testing.assert_array_equal(matrix.columns, columns)
    np.testing.assert_array_equal(matrix.values, dense[rows, columns])
    assert matrix.columns.dtype == np.int32


def test_queues_are_walked_as_they_are_surveyed():
    queues = QueueDiagrams(3, 8, lambda length: 0.25 + length)
    diagram, numbering = queues.diagram(), queues.numbering()
    found = walked_up_to(MANY, diagram, numbering)
    assert found is not None
    expected, matrix = expand_surveyed(survey(diagram, numbering)), found.expanded()
    for name in ("row_offsets", "columns", "values"):
        np.testing.assert_array_equal(getattr(matrix, name), getattr(expected, name))
    assert walked_up_to(matrix.num_entries, diagram, numbering) is not None
    assert walked_up_to(matrix.num_entries - 1, diagram, numbering) is None


@pytest.mark.parametrize("variable", [0, 3, 6, 9])
def test_a_variable_that_is_none_of_the_matrix_s_is_an_error(variable):
    values = np.arange(32.0).reshape((2,) * 5) + 1.0
    variables = sorted([1, 2, 7, 8, variable])
    diagram = diagram_of(values, variables)
    numbering = numbering_of(np.ones((2, 2), bool), [1, 7], [2, 8])
    with pytest.raises(InvalidModelError, match=f"depends on variable {variable}"):
        walked_up_to(MANY, diagram, numbering)
    with pytest.raises(InvalidModelError, match=f"depends on variable {variable}"):
        survey(diagram, numbering)


def nothing_shared(levels):
    """A full matrix whose entries are all different."""
    values = np.random.default_rng(1).uniform(0.5, 1.5, (2,) * (2 * levels))
    variables = list(range(2 * levels))
    states = np.ones((2,) * levels, bool)
    return diagram_of(values, variables), numbering_of(states, variables[::2], variables[1::2])


def steps_of(diagram, numbering):
    """Return how many nodes the paths of a matrix have that end at entries."""
    return int(survey(diagram, numbering).jobs().sum())


def test_small_matrices_are_walked(monkeypatch):
    diagram, numbering = nothing_shared(5)
    assert steps_of(diagram, numbering) == 5 * 273
    monkeypatch.setattr(walks, "WALKED_STEPS_A_LEVEL", 273)
    found = surveyed_or_walked(diagram, numbering)
    assert isinstance(found, Walked)
    monkeypatch.setattr(walks, "WALKED_STEPS_A_LEVEL", 272)
    surveyed = surveyed_or_walked(diagram, numbering)
    assert isinstance(surveyed, Survey)
    assert surveyed.num_entries == found.num_entries == 4**5


def test_more_states_than_steps_are_not_walked(monkeypatch):
    # A single entry, and many states without any.
    values = np.zeros((2,) * 10)
    values[(0,) * 10] = 1.0
    diagram, numbering = diagram_of(values, range(10)), nothing_shared(5)[1]
    assert steps_of(diagram, numbering) == 6
    # Five levels, 32 states.
    for steps, way in ((7, Walked), (6, Survey)):
        monkeypatch.setattr(walks, "WALKED_STEPS_A_LEVEL", steps)
        assert isinstance(surveyed_or_walked(diagram, numbering), way)


def test_choices_that_share_little_are_walked(monkeypatch):
    model = random_model(3, 4, choice_variables=2, density=0.9)
    roots, _ = choice_roots(model.diagram, model.choice_variables)
    monkeypatch.setattr(walks, "WALKED_STEPS_A_LEVEL", 0)
    surveyed = surveyed_or_walked(model.diagram, model.numbering, roots)
    assert isinstance(surveyed, Survey)
    monkeypatch.setattr(walks, "FEWEST_TRIPLES", 1)
    found = surveyed_or_walked(model.diagram, model.numbering, roots)
    assert isinstance(found, Walked)
    assert found.with_choices
    assert found.num_entries == surveyed.num_entries == np.count_nonzero(model.dense)


def test_large_matrices_that_share_little_are_walked(monkeypatch):
    diagram, numbering = nothing_shared(5)
    queues = QueueDiagrams(2, 40)
    shared = (queues.diagram(), queues.numbering())
    monkeypatch.setattr(walks, "WALKED_STEPS_A_LEVEL", 0)
    assert isinstance(surveyed_or_walked(diagram, numbering), Survey)
    monkeypatch.setattr(walks, "FEWEST_TRIPLES", 50)
    found = surveyed_or_walked(diagram, numbering)
    assert isinstance(found, Walked)
    assert found.num_entries == 4**5
    assert isinstance(surveyed_or_walked(*shared), Survey)
    for parts in ((diagram, numbering), shared):
        expected = expand_surveyed(survey(*parts))
        matrix = expand_matrix(*parts)
        np.testing.assert_array_equal(matrix.columns, expected.columns)
        np.testing.assert_array_equal(matrix.values, expected.values)


def test_memory_is_hardly_more_than_the_matrix(monkeypatch):
    diagram, numbering = nothing_shared(8)
    monkeypatch.setattr(walks, "WALKED_STEPS_A_LEVEL", 0)
    monkeypatch.setattr(walks, "FEWEST_TRIPLES", 1000)
    tracemalloc.start()
    found = surveyed_or_walked(diagram, numbering)
    matrix = expand_surveyed(found)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(found, Walked)
    size = matrix.row_offsets.nbytes + matrix.columns.nbytes + matrix.values.nbytes
    assert size <= expanded_bytes(found)
    assert peak < 1.5 * size


def test_the_estimate_of_choices_covers_what_they_take():
    diagram, numbering = nothing_shared(8)
    roots = np.full(3, diagram.root, dtype=np.int32)
    found = walked_up_to(MANY, diagram, numbering, roots)
    assert found is not None
    tracemalloc.start()
    matrix, groups, numbers = found.expanded_choices()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert numbers.tolist() == [0, 1, 2] * 256
    assert groups.tolist() == list(range(0, 769, 3))
    assert matrix.num_entries == 3 * 4**8
    # What was counted is in the estimate too.
    assert 0.99 * peak <= expanded_bytes(found) <= 1.02 * (peak + 8 * 256)
