"""Sums of panels: what a block keeps of the iterate, its edges, and rows of any length."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engines.cuda.formats import panels
from engines.cuda.formats.tuning import PanelTuning, RowTuning
from engines.cuda.modules import Launcher
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.events import told
from engines.systems.one_sided import SweepSystem
from tests.gpu.test_formats import MATRICES, expect_the_same, swept, systems


def random_matrix(rows, columns, lengths, seed=1, numbers=None):
    """Rows of given lengths, columns anywhere and in any order."""
    rng = np.random.default_rng(seed)
    lengths = np.resize(lengths, rows)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    total = int(offsets[-1])
    values = rng.uniform(0.1, 1.0, total) if numbers is None else rng.choice(numbers, total)
    return CsrMatrix(offsets, rng.integers(0, columns, total).astype(np.int32), values, columns)


def panels_of(**changed):
    return RowTuning(panels=PanelTuning(**changed))


def products(matrix, x):
    """The matrix times a vector, each row's sum rounded once."""
    each = matrix.values * x[matrix.columns]
    return np.array([math.fsum(each[a:b]) for a, b in itertools.pairwise(matrix.row_offsets)])


@pytest.mark.parametrize("codes", [256, 2])
@pytest.mark.parametrize("most", [16, 32, 112, 28_672])
@pytest.mark.parametrize("blocks", [1, 2, 4])
@pytest.mark.usefixtures("offsets")
def test_panels_of_any_size_sum_rows_of_any_length(most, blocks, codes):
    tuning = panels_of(most_states=most, most_codes=codes, blocks_a_processor=blocks)
    lengths = [0, 1, 7, 8, 9, 255, 256, 257, 0, 3, 2000, 31, 64, 65]
    rng = np.random.default_rng(2)
    for size, numbers in ((1, [0.5]), (16, None), (17, [0.25, 0.5, 0.75]), (500, [0.1, 0.7, 0.3])):
        matrix = random_matrix(size, size, lengths, numbers=numbers)
        system = SweepSystem(matrix, rng.uniform(0.5, 1.0, size), rng.uniform(0.0, 1.0, size))
        if -(-size // min(most, 28_672)) > panels.MOST_PANELS or matrix.num_entries == 0:
            continue
        sweeper, _, found, _ = swept(system, Format.PANELS, sweeps=1, tuning=tuning)
        assert sweeper.cost.format == "panels"
        expected = system.offset + products(matrix, system.start)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        again = swept(system, Format.PANELS, sweeps=1, tuning=tuning)[2]
        np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("states", [65_535, 65_536, 65_537])
@pytest.mark.parametrize("most", [16_384, 28_672])
def test_panels_hold_the_states_at_their_edges_and_beyond_16_bits(states, most):
    tuning = panels_of(most_states=most)
    shape = panels.cut(states, Launcher("int"), tuning.panels)
    assert shape is not None
    assert shape.width % 16 == 0
    assert shape.width * (shape.panels - 1) < states <= shape.width * shape.panels
    rng = np.random.default_rng(3)
    edges = np.arange(0, states, shape.width)
    edges = np.unique(np.concatenate([edges, edges + shape.width - 1, [states - 1]]))
    edges = edges[edges < states]
    rows = np.arange(0, states, 97, dtype=np.int32)
    some = np.array([np.concatenate([edges, rng.integers(0, states, 60)]) for _ in rows])
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * some.shape[1]
    values = rng.integers(1, 9, some.size) / 512.0
    matrix = CsrMatrix(offsets, some.ravel().astype(np.int32), values, states)
    start = rng.uniform(0.5, 1.0, states)
    system = SweepSystem(matrix, start, states=rows)
    sweeper, _, found, _ = swept(system, Format.PANELS, sweeps=1, tuning=tuning)
    assert sweeper.cost.format == "panels"
    expected = start.copy()
    expected[rows] = products(matrix, start)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["dense rows", "rows of warps", "rows beyond a byte", "uneven"])
@pytest.mark.parametrize("most", [16, 48, 28_672])
def test_panels_sweep_as_csr_does(name, most):
    for _, system in systems(MATRICES[name]()):
        sweeper, _ = expect_the_same(system, Format.PANELS, panels_of(most_states=most))
        assert sweeper.cost.format == "panels"


def test_infinities_reach_no_row_through_the_padding_of_panels():
    tuning = panels_of(most_states=32)
    matrix = random_matrix(90, 90, [3, 0, 9, 40])
    for place in (0, 31, 32, 89):
        start = np.ones(90)
        start[place] = np.inf
        expected = np.zeros(90)
        np.add.at(expected, matrix.row_of_entry(), matrix.values * start[matrix.columns])
        system = SweepSystem(matrix, start)
        found = swept(system, Format.PANELS, sweeps=1, tuning=tuning)[2]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_panels_cannot_hold_is_refused_by_name():
    many = SweepSystem(random_matrix(1025, 1025, [40]), np.ones(1025))
    sweeper, _ = expect_the_same(many, Format.PANELS, panels_of(most_states=16))
    assert "1025 states are more than 64 panels hold" in told(sweeper.cost.events)
    sparse = SweepSystem(random_matrix(600, 600, [5]), np.ones(600))
    tuning = panels_of(most_states=16, sparse_rows=100)
    sweeper, _ = expect_the_same(sparse, Format.PANELS, tuning)
    assert "600 rows have too few entries, 3000, for 38 panels" in told(sweeper.cost.events)


@pytest.mark.parametrize(("size", "lengths"), [(20_000, [600]), (2500, [2100, *[60] * 30])])
def test_auto_takes_panels_for_long_rows(size, lengths):
    matrix = random_matrix(size, size, lengths, numbers=[1 / 1024, 1 / 2048])
    sweeper, _ = expect_the_same(SweepSystem(matrix, np.ones(size)), Format.AUTO)
    assert sweeper.cost.format == "panels"
