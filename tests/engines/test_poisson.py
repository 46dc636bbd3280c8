"""Poisson weights against sixty-digit arithmetic and SciPy."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

from engines.errors import InvalidModelError
from engines.proofs.poisson import poisson_weights, prisms_weights

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
STIRLING = [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156)]
MEANS = [1e-300, 1e-3, 0.5, 1.0, 7.3, 15.5, 16.0, 40.25, 200.0, 744.1, 5000.7, 1e5, 1e7, 1e9 + 0.5]
ACCURACIES = [1e-6, 1e-14, 1e-26, 1e-32]


@pytest.fixture(autouse=True)
def sixty_digits():
    with localcontext() as context:
        context.prec = 60
        yield


def log_factorial(k):
    """ln k! by Stirling's series at k + 100 or more."""
    shift = Decimal(0)
    while k < 100:
        k += 1
        shift += Decimal(k).ln()
    x = Decimal(k)
    value = x * x.ln() - x + (2 * PI * x).ln() / 2
    for n, (numerator, denominator) in enumerate(STIRLING):
        value += Decimal(numerator) / denominator / x ** (2 * n + 1)
    return value - shift


def exact(k, mean):
    mean = Decimal(mean)
    power = k * mean.ln() if k else Decimal(0)
    return (power - mean - log_factorial(k)).exp()


def mass_outside(left, right, mean):
    """P(N < left) + P(N > right), summed outwards until the terms are negligible."""
    total = Decimal(0)
    for k, step in ((left - 1, -1), (right + 1, 1)):
        if k < 0:
            continue
        term = largest = exact(k, mean)
        while k >= 0 and term > largest * Decimal("1e-12"):
            total += term
            term = term * k / Decimal(mean) if step < 0 else term * Decimal(mean) / (k + 1)
            k += step
    return total


@pytest.mark.parametrize("accuracy", ACCURACIES)
@pytest.mark.parametrize("mean", MEANS)
def test_every_weight_keeps_nearly_all_digits(mean, accuracy):
    window = poisson_weights(mean, accuracy)
    some = np.unique(np.linspace(window.left, window.right, 20).astype(np.int64))
    for k in some.tolist():
        true = exact(k, mean)
        # Close to 0 a double has no more digits to keep.
        if true > Decimal("1e-290"):
            error = abs(Decimal(float(window.weights[k - window.left])) / true - 1)
            assert error < Decimal("4e-14")


@pytest.mark.parametrize("accuracy", ACCURACIES)
@pytest.mark.parametrize("mean", MEANS)
def test_the_lost_mass_is_bounded_and_within_the_accuracy(mean, accuracy):
    window = poisson_weights(mean, accuracy)
    lost = mass_outside(window.left, window.right, mean)
    assert 0 < lost <= Decimal(window.lost)
    assert window.lost <= accuracy
    assert len(window.weights) == window.right - window.left + 1
    assert 1.0 - window.lost - 1e-14 <= math.fsum(window.weights) <= 1.0 + 1e-14


@pytest.mark.parametrize("accuracy", [1e-6, 1e-10, 1e-14])
@pytest.mark.parametrize("mean", [1e-3, 3.0, 100.0, 12_345.6, 1e6])
def test_scipy_agrees(mean, accuracy):
    window = poisson_weights(mean, accuracy)
    k = np.arange(window.left, window.right + 1)
    np.testing.assert_allclose(window.weights, poisson.pmf(k, mean), rtol=1e-8)
    outside = poisson.cdf(window.left - 1, mean) + poisson.sf(window.right, mean)
    assert outside <= window.lost <= accuracy


@pytest.mark.parametrize("mean", [1e3, 1e5, 1e7, 1e9])
@pytest.mark.parametrize("accuracy", [1e-6, 1e-14, 1e-32])
def test_the_window_is_as_wide_as_a_normal_tail_asks_for(mean, accuracy):
    window = poisson_weights(mean, accuracy)
    deviations = math.sqrt(2.0 * math.log(2.0 / accuracy))
    assert len(window.weights) <= 2.0 * (1.3 * deviations + 1.0) * math.sqrt(mean)
    assert window.left < mean < window.right


@given(
    mean=st.floats(1e-3, 1e7),
    accuracy=st.integers(-32, -1).map(lambda power: 10.0**power),
)
def test_any_window_rises_to_its_mode_and_falls_and_sums_to_one(mean, accuracy):
    window = poisson_weights(mean, accuracy)
    mode = math.floor(mean) - window.left
    assert 0 <= mode < len(window.weights)
    slack = 1.0 + 1e-12
    assert (window.weights[:mode] <= window.weights[1 : mode + 1] * slack).all()
    assert (window.weights[mode:-1] * slack >= window.weights[mode + 1 :]).all()
    assert abs(math.fsum(window.weights) - 1.0) <= window.lost + 1e-13
    assert (window.weights > 0.0).all()


@pytest.mark.parametrize("mean", [1e-3, 2.5, 300.0, 1e6])
def test_tails_are_the_probabilities_of_more_events(mean):
    window = poisson_weights(mean, 1e-26)
    found = window.tails(window.left, window.right, mean)
    tails = found.weights
    assert tails[-1] == 0.0
    assert found.lost < 1e-20 * mean
    for place in np.unique(np.linspace(0, len(tails) - 2, 12).astype(int)).tolist():
        expected = mass_outside(0, window.left + place, mean)
        if expected > Decimal("1e-20"):
            assert tails[place] == pytest.approx(float(expected), rel=1e-5, abs=0)
    # The mean is the sum of P(N > k) over all k.
    assert window.left + tails.sum() == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("mean", [2.5, 300.0, 1e4])
def test_what_tails_miss_of_others_is_bounded(mean):
    most = poisson_weights(mean, 1e-26)
    for window in (prisms_weights(mean, 1.25e-7), poisson_weights(mean, 1e-30)):
        found = most.tails(window.left, window.right, mean)
        assert len(found.weights) == window.right - window.left + 1
        # The sum of P(N > k) over all k is the mean; left of the window 1 stands for it.
        missing = mean - (window.left + found.weights.sum())
        assert abs(missing) <= found.lost + 1e-12 * mean
        assert found.lost < 2.0 * abs(missing) + 1e-12 * mean or window.left > 0


def test_without_time_nothing_happens_for_sure():
    window = poisson_weights(0.0, 1e-14)
    assert (window.left, window.right, window.lost) == (0, 0, 0.0)
    np.testing.assert_array_equal(window.weights, [1.0])


@pytest.mark.parametrize("mean", [-1.0, math.nan, math.inf])
def test_a_mean_that_is_none_is_refused(mean):
    with pytest.raises(ValueError, match="Poisson mean"):
        poisson_weights(mean, 1e-14)


@pytest.mark.parametrize("accuracy", [0.0, 1e-101, 1.0, 2.0, -1e-3, math.nan])
def test_an_accuracy_out_of_range_is_refused(accuracy):
    with pytest.raises(ValueError, match="accuracy must be"):
        poisson_weights(5.0, accuracy)


def test_more_steps_than_anyone_waits_for_are_refused():
    with pytest.raises(InvalidModelError, match=r"time bound too big.*1e\+13 iterations"):
        poisson_weights(1e13, 1e-14)


@pytest.mark.parametrize("accuracy", [1e-3, 1e-6, 1e-14])
@pytest.mark.parametrize("mean", [0.5, 7.3, 40.25, 200.0, 5000.7])
def test_the_events_left_out_on_the_right_are_few_in_the_mean_too(mean, accuracy):
    right = poisson_weights(mean, accuracy).right
    # E[N; N > right] = mean P(N ≥ right), each summed until its terms are negligible.
    missed = sum(k * exact(k, mean) for k in range(right + 1, right + 200))
    assert missed <= Decimal(mean) * Decimal(accuracy / 2.0)


@pytest.mark.parametrize(
    ("mean", "accuracy", "window"),
    [
        # As PRISM's log has them: kanban, cluster and polling of its examples.
        (4.896, 1.25e-7, (0, 20)),
        (4.896, 1.25e-4, (0, 15)),
        (40.812 * 2, 1.25e-7, (0, 134)),
        (40.812 * 3, 1.25e-7, (0, 185)),
        (205.02 * 2, 1.25e-7, (266, 584)),
        (205.02 * 3, 1.25e-7, (439, 827)),
        (1e-3, 1.25e-7, (0, 2)),
        (1e-9, 0.1, (0, 1)),
    ],
)
def test_prisms_windows(mean, accuracy, window):
    found = prisms_weights(mean, accuracy)
    assert (found.left, found.right) == window


@given(st.floats(1e-6, 1e6), st.floats(1e-10, 0.5))
def test_what_prisms_windows_leave_out_is_bounded(mean, accuracy):
    found = prisms_weights(mean, accuracy)
    outside = poisson.cdf(found.left - 1, mean) + poisson.sf(found.right, mean)
    assert outside <= found.lost * (1.0 + 1e-6) + 1e-300
    assert len(found.weights) == found.right - found.left + 1
    assert found.weights == pytest.approx(
        poisson.pmf(np.arange(found.left, found.right + 1), mean), rel=1e-6, abs=1e-300
    )
