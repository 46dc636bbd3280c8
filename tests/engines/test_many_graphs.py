"""Components of ten thousand random graphs of many shapes, against SciPy and plain loops."""

from __future__ import annotations

import time

import numpy as np
import pytest

from engines.graph.components import sccs
from engines.graph.mec import maximal_end_components
from engines.host.graph import CpuGraph
from engines.model.explicit import ModelKind
from tests.engines.component_checks import expect_components, strong_components
from tests.engines.graph_models import everywhere
from tests.engines.graph_shapes import (
    NUMBERINGS,
    SHAPES,
    WIDEST,
    Drawn,
    disjoint_union,
    drawn,
    dressed,
    line,
)

PLAIN = 30
"""Models of at most so many states are given to the plain-loop oracles as well."""


def compare(seeds):
    for seed in seeds:
        found = drawn(seed)
        expect_components(CpuGraph(found.model), found, plain=found.model.num_states <= PLAIN)


def test_some_hundred_graphs_of_all_shapes():
    compare(range(20 * len(SHAPES)))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(10))
def test_ten_thousand_graphs(chunk):
    compare(range(1000 * chunk, 1000 * (chunk + 1)))


@pytest.mark.parametrize("largest", [16, 400])
def test_many_graphs_side_by_side(largest):
    parts = [drawn(seed, largest) for seed in range(10_000, 10_000 + 20 * len(SHAPES))]
    union = disjoint_union(parts)
    assert not union.everything
    expect_components(CpuGraph(union.model), union)


def test_what_is_drawn_is_valid_and_of_many_kinds():
    seen, widest, alone = set(), 0, 0
    for seed in range(20 * len(SHAPES)):
        found = drawn(seed)
        assert found.model.check() is found.model
        seen.add(found.model.kind)
        degrees = np.bincount(found.model.states_of_rows()[found.model.matrix.row_of_entry()])
        widest = max(widest, int(degrees.max(initial=0)))
        _, count = strong_components(found.model, everywhere(found.model))
        alone += count == found.model.num_states
    assert seen == set(ModelKind)
    assert WIDEST - 10 <= widest <= 2 * WIDEST
    assert 0.2 < alone / (20 * len(SHAPES)) < 0.8


def test_a_seed_draws_the_same_model_every_time():
    for seed in (0, 7, 12):
        first, second = drawn(seed), drawn(seed)
        np.testing.assert_array_equal(first.model.matrix.columns, second.model.matrix.columns)
        np.testing.assert_array_equal(first.restrict, second.restrict)


def long_line(size, numbering, kind=ModelKind.DTMC):
    """A line in one of the numberings, its last state with a loop."""
    rng = np.random.default_rng(6)
    model = dressed(rng, kind, *line(rng, size), numbering)
    return Drawn(f"line, {numbering}", model, everywhere(model), rows_of(model))


def rows_of(model):
    return np.ones(model.matrix.num_rows, dtype=np.bool_)


@pytest.mark.parametrize("numbering", NUMBERINGS)
def test_a_long_line_takes_no_quadratic_time(numbering):
    found = long_line(300_000, numbering, ModelKind.MDP)
    started = time.process_time()
    assert sccs(found.model).count == 300_000
    ended = maximal_end_components(found.model)
    assert time.process_time() - started < 8.0
    # Without a loop of its own, a state of a line is in no end component.
    assert ended.count == int((found.model.matrix.row_lengths()[ended.choices] == 1).sum())
    assert ended.count >= 1
