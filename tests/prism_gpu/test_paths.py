"""Sampled paths against probabilities and times that are known."""

from __future__ import annotations

import numpy as np
import pytest

import prism_gpu as pg
from engines.model.csr import CsrMatrix
from prism_gpu.paths import cumulated_rows


def test_sums_of_rows_are_taken_row_by_row():
    matrix = CsrMatrix(
        np.array([0, 1, 4, 6]),
        np.zeros(6, int),
        np.array([1e300, 1.0, 2.0, 3.0, 1e-300, 1e-301]),
        1,
    )
    expected = [1e300, 1.0, 3.0, 6.0, 1e-300, 1e-300 + 1e-301]
    assert cumulated_rows(matrix).tolist() == expected


def test_shares_of_the_first_step_are_the_probabilities():
    row = np.array([0.05, 0.0, 0.3, 0.65])
    model = pg.dtmc(np.tile(row, (4, 1)))
    paths = model.simulate(1, paths=200_000, seed=7)
    assert paths.times is None
    assert paths.states.shape == (200_000, 2)
    shares = np.bincount(paths.states[:, 1], minlength=4) / 200_000
    assert np.abs(shares - row).max() < 5 * np.sqrt(0.25 / 200_000)
    assert shares[1] == 0.0


def test_equal_seeds_give_equal_paths():
    model = pg.dtmc([[0.5, 0.5], [0.5, 0.5]])
    one, other = (model.simulate(50, paths=3, seed=1).states for _ in range(2))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, model.simulate(50, paths=3, seed=2).states)


def test_every_step_is_a_transition_and_times_are_exponential():
    rates = np.array([[0, 2.0, 1.0], [4.0, 0, 0], [0, 0.5, 0]])
    paths = pg.ctmc(rates).simulate(2_000, paths=20, seed=3)
    before, after = paths.states[:, :-1], paths.states[:, 1:]
    assert (rates[before, after] > 0).all()
    stays = np.diff(paths.times, axis=1)
    for state, rate in enumerate(rates.sum(axis=1)):
        here = stays[before == state]
        assert here.mean() == pytest.approx(1 / rate, rel=6 / np.sqrt(len(here)))
        assert np.exp(-rate * here).mean() == pytest.approx(0.5, abs=3 / np.sqrt(len(here)))


def test_where_paths_begin_and_what_is_refused():
    model = pg.dtmc(np.eye(3), initial=2)
    assert (model.simulate(2).states == 2).all()
    assert (model.simulate(2, start=1).states == 1).all()
    assert model.simulate(0, paths=4).states.shape == (4, 1)
    with pytest.raises(ValueError, match="start is 3, but the states are 0 to 2"):
        model.simulate(1, start=3)
    with pytest.raises(TypeError, match=r"paths must be a whole number, not 2\.5"):
        model.simulate(1, paths=2.5)
    with pytest.raises(ValueError, match="steps must not be negative"):
        model.simulate(-1)
    with pytest.raises(pg.InvalidModelError, match="under a strategy"):
        pg.mdp([np.eye(2)]).simulate(1)
