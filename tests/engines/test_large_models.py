"""Models large enough for several numba threads: the same sweeps as SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.cpu import engine as cpu
from engines.environment import DeviceChoice, Method, SolverEnvironment
from engines.reachability import solve_reachability
from engines.steady_state import solve_steady_state
from engines.system import Direction
from tests.gpu import big

SIZE = 60_000


def numba_and_scipy(monkeypatch, solve, *arguments, method, **keywords):
    environment = SolverEnvironment(method=method, device=DeviceChoice.CPU)
    results = []
    for smallest in (0, 10**12):
        for limit in ("NUMBA_ENTRIES", "NUMBA_ENTRIES_AT_START"):
            monkeypatch.setattr(cpu, limit, smallest)
        results.append(solve(*arguments, environment, **keywords))
    assert "numba" in results[0].cost.kernel
    assert "SciPy" in results[1].cost.kernel
    assert results[0].iterations == results[1].iterations
    np.testing.assert_allclose(results[0].values, results[1].values, rtol=1e-11)
    assert results[0].change == pytest.approx(results[1].change, rel=1e-4)


@pytest.mark.parametrize("method", [Method.JACOBI, Method.JOR, Method.POWER])
def test_until_and_steady_state(monkeypatch, method):
    unknown = np.arange(SIZE) > 1
    start = (np.arange(SIZE) == 1).astype(float)
    model = big.random_dtmc(1, SIZE)
    numba_and_scipy(monkeypatch, solve_reachability, model, unknown, start, method=method)
    rates = big.random_rates(2, SIZE)
    everywhere = np.ones(SIZE, dtype=np.bool_)
    numba_and_scipy(monkeypatch, solve_steady_state, rates, everywhere, method=method)


@pytest.mark.parametrize("direction", Direction)
def test_mdps(monkeypatch, direction):
    model = big.random_mdp(3, SIZE)
    unknown = np.arange(SIZE) > 1
    rewards = np.random.default_rng(4).uniform(0.0, 2.0, model.matrix.num_rows)
    numba_and_scipy(
        monkeypatch,
        solve_reachability,
        model,
        unknown,
        np.zeros(SIZE),
        method=Method.VALUE_ITERATION,
        rewards=rewards,
        direction=direction,
    )


def test_one_row_with_most_of_the_entries(monkeypatch):
    model = big.dense_row(120_000)
    unknown = np.arange(120_000) > 1
    start = (np.arange(120_000) == 1).astype(float)
    numba_and_scipy(monkeypatch, solve_reachability, model, unknown, start, method=Method.JACOBI)


@given(st.lists(st.integers(0, 500), max_size=300))
def test_pieces_of_rows_cover_every_row_once(lengths):
    from engines.cpu.kernels import chunk_bounds

    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int32)]).astype(np.int32)
    bounds = chunk_bounds(offsets)
    assert bounds[0] == 0
    assert bounds[-1] == len(lengths)
    assert (np.diff(bounds) >= 0).all()
