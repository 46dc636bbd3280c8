"""Rows taken by few or many entries at a time have the same sums, digit for digit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from engines.cuda.formats import batches
from engines.cuda.formats.tuning import BatchTuning, RowTuning
from engines.cuda.two_sided import CudaTwoSidedSweeper
from engines.cuda.uniformise import sum_powers
from engines.model.choice import Format
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.power_sums import PowerSum
from engines.systems.two_sided import TwoSidedSystem
from tests.engines import models
from tests.gpu import big
from tests.gpu.test_formats import MATRICES, swept, systems

pytestmark = pytest.mark.gpu

SIZES = [(f, size) for f, sizes in batches.BATCHES.items() for size in sizes] + [
    (Format.VALUES, BatchTuning().far_batch_entries)
]
every_size = pytest.mark.parametrize(("matrix_format", "size"), SIZES)


def by_batches(monkeypatch, size, make):
    """What `make` does with and without rows taken by so many entries; the first with layouts."""
    plain, laid_out = make(), []

    def note(*given, of=batches.in_batches):
        laid_out.append(of(*given))
        return laid_out[-1]

    with monkeypatch.context() as patch:
        patch.setattr(batches, "SMALL_SWEEP_BYTES", 0)
        patch.setattr(batches, "batch_for", lambda *_: size)
        patch.setattr("engines.cuda.formats.lay_out.in_batches", note)
        found = make()
    told = f"OWN_BATCH={size}" in laid_out[-1].defines
    assert told == (size != batches.USUAL)
    return plain, found


@every_size
@pytest.mark.parametrize("name", ["two states", "tandem-like", "uneven", "rows beyond a byte"])
def test_chains(monkeypatch, name, matrix_format, size):
    for _, system in systems(MATRICES[name]()):
        if system.matrix.num_entries == 0:
            continue
        plain, found = by_batches(monkeypatch, size, lambda s=system: swept(s, matrix_format)[1:])
        for theirs, ours in zip(plain, found, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@every_size
@pytest.mark.parametrize("direction", Direction)
def test_choices_from_one_side_and_from_two(monkeypatch, direction, matrix_format, size):
    model = big.random_mdp(4, 2000)
    zeros, ones = np.zeros(2000), np.ones(2000)
    zeros[0] = 1.0
    groups = {"group_offsets": model.row_group_offsets, "direction": direction}
    system = SweepSystem(model.matrix, zeros, **groups)

    def two_sided():
        pair = TwoSidedSystem(system, ones)
        sweeper = CudaTwoSidedSweeper(pair, -1.0, True, 0, matrix_format)
        sweeper.run(50)
        return sweeper.bounds()

    for make in (lambda: swept(system, matrix_format)[1:], two_sided):
        for theirs, ours in zip(*by_batches(monkeypatch, size, make), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@every_size
@pytest.mark.parametrize("name", ["tandem-like", "uneven"])
def test_sums_of_powers_and_two_sided_chains(monkeypatch, name, matrix_format, size):
    matrix = MATRICES[name]()
    states = matrix.num_rows
    start = np.random.default_rng(3).uniform(0.0, 1.0, states)
    weights = np.arange(1.0, 100.0)
    problem = PowerSum(SweepSystem(matrix, start), np.full(states, 0.1), 2.0, 5, weights, 0.25)

    def two_sided():
        system = SweepSystem(matrix, np.zeros(states), np.full(states, 0.25))
        pair = TwoSidedSystem(system, np.full(states, 50.0))
        sweeper = CudaTwoSidedSweeper(pair, -1.0, True, 0, matrix_format)
        sweeper.run(40)
        return sweeper.bounds()

    plain, found = by_batches(
        monkeypatch, size, lambda: sum_powers(problem, None, 0, matrix_format).values
    )
    np.testing.assert_array_equal(found, plain)
    for theirs, ours in zip(*by_batches(monkeypatch, size, two_sided), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("matrix_format", batches.BATCHES)
def test_uneven_rows_of_an_mdp_have_a_thread_a_state(monkeypatch, matrix_format):
    model = big.random_mdp(5, 3000)
    ends, columns, given = model.matrix.row_offsets, model.matrix.columns, model.matrix.values
    rows = [
        dict(zip(columns[a:b].tolist(), given[a:b].tolist(), strict=True))
        for a, b in pairwise(ends)
    ]
    rows[700] = dict.fromkeys(range(60), 1.0 / 60)
    matrix = models.csr(rows, 3000)
    monkeypatch.setattr(batches, "SMALL_SWEEP_BYTES", 0)
    groups = {"group_offsets": model.row_group_offsets, "direction": Direction.MAXIMISE}
    system = SweepSystem(matrix, np.linspace(0.0, 1.0, 3000), **groups)
    found = []
    for most in (BatchTuning().uneven_ratio, 1000):
        tuning = RowTuning(batches=BatchTuning(uneven_ratio=most))
        sweeper, changes, values, _ = swept(system, matrix_format, tuning=tuning)
        by_state = most < 1000 or matrix_format is Format.CSR
        assert sweeper._rows[0].layout.chunked != by_state
        found.append((changes, values))
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_values_of_very_short_rows_have_a_thread_each(monkeypatch):
    size = 150_000
    matrix = big.random_dtmc(1, size, 2).matrix
    tenths = np.round(matrix.values, 1) + 0.05
    system = SweepSystem(
        type(matrix)(matrix.row_offsets, matrix.columns, tenths, size), np.ones(size)
    )
    sweeper, changes, values, _ = swept(system, Format.VALUES)
    layout = sweeper._rows[0].layout
    assert "ALONE" in layout.defines
    assert not layout.chunked
    monkeypatch.setattr(batches, "BATCHES", {})
    _, theirs, wanted, _ = swept(system, Format.VALUES)
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(changes, theirs)
