"""Distributions over the states, against SciPy and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import prism_gpu as pg

RATES = np.array([[0, 2.0, 1.0], [4.0, 0, 0], [0, 0.5, 0]])
GENERATOR = RATES - np.diag(RATES.sum(axis=1))
CHAIN = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.125, 0.875]])


def test_a_ctmc_at_a_time_and_in_the_long_run():
    model = pg.ctmc(RATES, initial=1, epsilon=1e-12)
    assert np.allclose(model.transient(0.7), expm(0.7 * GENERATOR)[1], rtol=0, atol=1e-12)
    limit = model.steady_state()
    assert np.allclose(limit @ GENERATOR, 0.0, atol=1e-11)
    assert limit.sum() == pytest.approx(1.0)
    assert limit[2] == pytest.approx(model.check("S=? [ x=2 ]").value)


def test_a_dtmc_after_steps_and_in_the_long_run():
    model = pg.dtmc(CHAIN, epsilon=1e-12)
    begin = np.array([0.2, 0.3, 0.5])
    expected = begin @ np.linalg.matrix_power(CHAIN, 5)
    assert np.allclose(model.transient(5, begin), expected, rtol=0, atol=1e-14)
    assert np.array_equal(model.transient(0), [1.0, 0.0, 0.0])
    limit = model.steady_state(method="power")
    assert np.allclose(limit @ CHAIN, limit, atol=1e-10)


def test_the_long_run_may_depend_on_the_beginning():
    model = pg.dtmc([[0, 0.25, 0.75], [0, 1, 0], [0, 0, 1]], initial=[0, 1])
    assert np.allclose(model.steady_state(), [0, 0.625, 0.375])
    assert np.allclose(model.steady_state([0, 0, 1]), [0, 0, 1])


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda model: model.transient(-1), ValueError, "time must be a number that is not neg"),
        (lambda model: model.transient(1.5), ValueError, "a DTMC has whole steps"),
        (lambda model: model.transient(1e300), ValueError, "after at most 2147483647 steps"),
        (lambda model: model.transient("1"), TypeError, "time must be a number, not '1'"),
        (lambda model: model.transient(None), TypeError, "time must be a number, not None"),
        (lambda model: model.transient(1, "ab"), pg.InvalidModelError, "must hold real numbers"),
        (lambda model: model.transient(1, {0: 1}), pg.InvalidModelError, "an array of numbers"),
        (lambda model: model.transient(1, [1, 0]), pg.InvalidModelError, "has shape"),
        (lambda model: model.transient(1, [1, 1, 0]), pg.InvalidModelError, "it sums to 2"),
        (lambda model: model.steady_state([2, -1, 0]), pg.InvalidModelError, "entry is -1"),
        (lambda model: model.steady_state(epsilom=1), TypeError, "did you mean 'epsilon'"),
    ],
)
def test_what_is_refused(ask, error, message):
    with pytest.raises(error, match=message):
        ask(pg.dtmc(CHAIN))


def test_an_mdp_needs_a_strategy():
    with pytest.raises(pg.InvalidModelError, match="under a strategy"):
        pg.mdp([CHAIN]).steady_state()
