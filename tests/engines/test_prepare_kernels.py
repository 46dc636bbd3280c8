"""Scaling by numba's loops gives NumPy's arrays, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.cpu import prepare, prepare_kernels
from engines.cpu.prepare import scaled_by_arrays
from engines.cpu.prepare_kernels import scaled_by_loops
from engines.system import Scaling, SweepSystem
from tests.engines import models


def random_matrix(seed, size, largest=1.0):
    """Some entries a row in any order of columns, loops among them."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            int(j): float(rng.uniform(0.0, largest))
            for j in rng.permutation(size)[: rng.integers(0, min(size, 5) + 1)]
        }
        for _ in range(size)
    ]
    return models.csr(rows)


def expect_the_same(found, wanted):
    assert found.scaling is wanted.scaling is Scaling.NONE
    for name in ("row_offsets", "columns", "values"):
        ours, theirs = getattr(found.matrix, name), getattr(wanted.matrix, name)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    assert found.matrix.num_columns == wanted.matrix.num_columns
    if wanted.offset is None:
        assert found.offset is None
    else:
        np.testing.assert_array_equal(found.offset, wanted.offset)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 40))
def test_balance_is_numpy_s(seed, size):
    system = SweepSystem(random_matrix(seed, size), np.ones(size), scaling=Scaling.BALANCE)
    expect_the_same(scaled_by_loops(system), scaled_by_arrays(system))


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 40),
    subset=st.booleans(),
    offset=st.booleans(),
)
def test_the_diagonal_goes_as_in_numpy(seed, size, subset, offset):
    # Diagonals up to 1.5: some states only loop, or more than that.
    matrix = random_matrix(seed, size, 1.5)
    states = np.arange(0, size, 2, dtype=np.int32) if subset else None
    matrix = matrix if states is None else matrix.select_rows(states)
    right = np.linspace(0.5, 2.0, matrix.num_rows) if offset else None
    system = SweepSystem(matrix, np.ones(size), right, states, Scaling.DIAGONAL)
    expect_the_same(scaled_by_loops(system), scaled_by_arrays(system))


@pytest.mark.parametrize("scaling", [Scaling.BALANCE, Scaling.DIAGONAL])
def test_the_number_of_threads_does_not_matter(monkeypatch, scaling):
    system = SweepSystem(random_matrix(1, 500), np.ones(500), np.ones(500), scaling=scaling)
    alone = scaled_by_loops(system)
    monkeypatch.setattr(prepare_kernels, "use_threads", lambda _entries: 2)
    expect_the_same(scaled_by_loops(system), alone)


def test_what_is_not_to_be_scaled_stays():
    system = SweepSystem(random_matrix(2, 5), np.ones(5))
    assert scaled_by_loops(system) is system
    assert prepare.scaled(system) is system


def test_loops_scale_large_systems(monkeypatch):
    system = SweepSystem(random_matrix(3, 50), np.ones(50), scaling=Scaling.BALANCE)
    entries = system.matrix.num_entries
    found, ready = [], [False]
    monkeypatch.setattr(
        prepare_kernels, "scaled_by_loops", lambda given: found.append(given) or given
    )
    monkeypatch.setattr(prepare_kernels, "are_ready", lambda: ready[0])
    for limit, compiling, is_ready, by_loops in [
        (entries + 1, entries, True, False),
        (entries, entries + 1, False, False),
        (entries, entries + 1, True, True),
        (entries, entries, False, True),
    ]:
        monkeypatch.setattr(prepare, "LOOPS_ENTRIES", limit)
        monkeypatch.setattr(prepare, "COMPILE_ENTRIES", compiling)
        ready[0] = is_ready
        prepare.scaled(system)
        assert bool(found) is by_loops
        found.clear()


@pytest.mark.parametrize("subset", [False, True])
def test_without_a_diagonal_nothing_is_copied(subset):
    rows = [{(i + 1) % 6: 0.25, (i + 2) % 6: 0.5} for i in range(6)]
    states = np.array([0, 2, 5], dtype=np.int32) if subset else None
    matrix = models.csr(rows) if states is None else models.csr(rows).select_rows(states)
    system = SweepSystem(matrix, np.ones(6), np.ones(matrix.num_rows), states, Scaling.DIAGONAL)
    found = scaled_by_loops(system)
    assert found.matrix is matrix
    expect_the_same(found, scaled_by_arrays(system))


@pytest.mark.parametrize("scale", [scaled_by_arrays, scaled_by_loops])
def test_what_leaves_a_state_is_added_up_where_it_mostly_stays(scale):
    matrix = models.csr([{0: 1.0 - 4e-12, 1: 1e-12, 2: 3e-12}, {0: 0.5, 1: 0.2}, {2: 1.0}])
    found = scale(SweepSystem(matrix, np.ones(3), np.full(3, 8e-12), scaling=Scaling.DIAGONAL))
    np.testing.assert_allclose(found.matrix.values, [0.25, 0.75, 0.625], rtol=1e-15)
    np.testing.assert_allclose(found.offset, [2.0, 1e-11, 8e-12], rtol=1e-15)
