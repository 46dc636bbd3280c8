"""Large models: the sweeps of one thread and of several, and what SciPy makes of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from engines.host.compiled import shares
from engines.host.compiled.shares import cut_rows
from engines.host.engine import CpuEngine
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from tests.gpu import big

SIZE = 60_000
SWEEPS = 20


def swept(system: SweepSystem):
    sweeper = CpuEngine().sweeper(system, -1.0, True)
    return sweeper.cost.kernel, sweeper.run(SWEEPS), sweeper.values().copy()


def on_one_thread_and_several(monkeypatch, system):
    """Return the changes and values that one thread and three have, bit for bit."""
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(shares, "num_cores", lambda cores=cores: cores)
        kernel, *numbers = swept(system)
        assert kernel == f"compiled, threads {cores}"
        found.append(numbers)
    for one, several in zip(*found, strict=True):
        np.testing.assert_array_equal(one, several)
    return found[0]


@pytest.mark.parametrize("omega", [1.0, 0.9])
@pytest.mark.parametrize(
    "model", [big.random_dtmc(1, SIZE), big.dense_row(120_000)], ids=["random", "one long row"]
)
def test_chains(monkeypatch, model, omega):
    size = model.num_states
    system = SweepSystem(model.matrix, np.random.default_rng(1).random(size), omega=omega)
    changes, values = on_one_thread_and_several(monkeypatch, system)
    matrix = scipy.sparse.csr_array(
        (model.matrix.values, model.matrix.columns, model.matrix.row_offsets), (size, size)
    )
    x = system.start
    for change in changes:
        after = (1.0 - omega) * x + omega * (matrix @ x)
        assert change == pytest.approx(np.abs(after - x).max(), rel=1e-9, abs=1e-15)
        x = after
    np.testing.assert_allclose(values, x, rtol=1e-11)


def test_steady_states(monkeypatch):
    rates = big.random_rates(2, SIZE)
    start = np.full(SIZE, 1.0 / SIZE)
    system = SweepSystem(rates.matrix, start, scaling=Scaling.BALANCE, omega=0.9)
    _, values = on_one_thread_and_several(monkeypatch, system)
    assert np.isfinite(values).all()
    assert (values > 0.0).all()


@pytest.mark.parametrize("direction", Direction)
def test_mdps(monkeypatch, direction):
    model = big.random_mdp(3, SIZE)
    matrix, groups = model.matrix, model.row_group_offsets
    rewards = np.random.default_rng(4).uniform(0.0, 2.0, matrix.num_rows)
    start = np.zeros(SIZE)
    system = SweepSystem(matrix, start, offset=rewards, group_offsets=groups, direction=direction)
    _, values = on_one_thread_and_several(monkeypatch, system)
    array = scipy.sparse.csr_array(
        (matrix.values, matrix.columns, matrix.row_offsets), (matrix.num_rows, SIZE)
    )
    best = np.minimum if direction is Direction.MINIMISE else np.maximum
    x = start
    for _ in range(SWEEPS):
        x = best.reduceat(array @ x + rewards, groups[:-1])
    np.testing.assert_allclose(values, x, rtol=1e-11)


@given(st.lists(st.integers(0, 500), max_size=300), st.integers(1, 40))
def test_pieces_of_rows_cover_every_row_once(lengths, pieces):
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int32)]).astype(np.int32)
    bounds = cut_rows(offsets, pieces)
    assert len(bounds) == pieces + 1
    assert bounds[0] == 0
    assert bounds[-1] == len(lengths)
    assert (np.diff(bounds) >= 0).all()
