"""The textbook's components are SciPy's and our engines'."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bridge.reproduce.graph_families import GENERATED
from bridge.reproduce.graphs import generate
from bridge.reproduce.textbook import Textbook, numbered
from engines.devices.graph import operations_of
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind


def drawn(seed, states=400):
    """A random MDP: one to three choices a state, of one to three targets near it."""
    rng = np.random.default_rng(seed)
    groups = np.concatenate(([0], np.cumsum(rng.integers(1, 4, states)))).astype(np.int32)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(1, 4, groups[-1])))).astype(np.int32)
    row = np.repeat(np.arange(groups[-1]), np.diff(offsets))
    source = np.searchsorted(groups, row, side="right") - 1
    columns = ((source + rng.integers(-4, 3, len(row))) % states).astype(np.int32)
    matrix = CsrMatrix(offsets, columns, np.ones(len(columns)), states)
    return ExplicitModel(ModelKind.MDP, matrix, groups)


@pytest.mark.parametrize("seed", range(8))
def test_strong_components_are_scipy_s(seed):
    model = drawn(seed)
    labels, count = Textbook(model).strong_components()
    groups = model.row_group_offsets
    source = np.repeat(np.arange(400), np.diff(model.matrix.row_offsets[groups]))
    edges = coo_array((np.ones(len(source)), (source, model.matrix.columns)), shape=(400, 400))
    found, theirs = connected_components(edges, directed=True, connection="strong")
    assert count == found
    np.testing.assert_array_equal(numbered(labels, count), numbered(theirs, found))


@pytest.mark.parametrize("source", [*range(8), "wlan", "coin"])
def test_both_decompositions_are_our_engine_s(source):
    named = isinstance(source, str)
    model = generate(GENERATED[source](0.0005)) if named else drawn(source)
    everything = np.ones(model.num_states, dtype=np.bool_)
    textbook, engine = Textbook(model), operations_of(model)
    ours, count = engine.strong_components(everything)
    labels, found = textbook.strong_components()
    assert found == count
    np.testing.assert_array_equal(numbered(labels, found), ours)
    ours, count = engine.end_component_states(everything)
    labels, found = textbook.end_components(textbook.turned_round())
    assert found == count
    np.testing.assert_array_equal(numbered(labels, found), ours)


def test_the_model_is_left_as_it_was():
    model = drawn(3)
    before = model.matrix.columns.copy()
    textbook = Textbook(model)
    textbook.end_components(textbook.turned_round())
    np.testing.assert_array_equal(model.matrix.columns, before)
