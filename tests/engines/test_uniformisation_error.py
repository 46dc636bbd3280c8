"""Bounds of time-bounded questions against sums of powers in sixty decimal digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from engines.model.environment import SolverEnvironment
from engines.model.explicit import RewardStructure
from engines.proofs.poisson import poisson_weights
from engines.proofs.uniformisation_error import LARGEST_RELATIVE, SumError, sum_error
from engines.questions import uniformisation
from engines.questions.time_bounded import (
    cumulative_rewards_until,
    distribution_at,
    instantaneous_rewards_at,
    time_bounded_until,
)
from tests.engines import models

DIGITS = 60


def rational_rates(seed, size=5):
    """Rates that a double does not hold, a cycle and some more, of very different sizes."""
    rng = np.random.default_rng(seed)
    rows = []
    for state in range(size):
        targets = {(state + 1) % size} | {int(t) for t in rng.integers(0, size, 2)}
        targets.discard(state)
        rows.append(
            {t: Fraction(int(rng.integers(1, 90)), 7 ** int(rng.integers(3))) for t in targets}
        )
    return rows


def ctmc(rows):
    return models.ctmc([{t: float(rate) for t, rate in row.items()} for row in rows])


def decimal(number):
    fraction = Fraction(number)
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def summed(rows, start, time, *, moving=None, cumulative=False, forward=False):
    """Σ_k c_k P^k x, term by term until what is left has no digit; uniformised by another rate."""
    size = len(rows)
    moving = range(size) if moving is None else moving
    with localcontext() as context:
        context.prec = DIGITS
        rate = decimal(max((sum(row.values()) for row in rows), default=Fraction(0)) + 1)
        matrix = [[Decimal(int(i == j)) for j in range(size)] for i in range(size)]
        for i in moving:
            for j, part in rows[i].items():
                matrix[i][j] += decimal(part) / rate
                matrix[i][i] -= decimal(part) / rate
        if forward:
            matrix = [list(column) for column in zip(*matrix, strict=True)]
        mean = rate * decimal(time)
        vector = [decimal(x) for x in start]
        probability, below = (-mean).exp(), Decimal(0)
        total = [Decimal(0)] * size
        k = 0
        while k < mean or probability * (k + 1) > Decimal(10) ** (-DIGITS + 12):
            below += probability
            weight = (1 - below) / rate if cumulative else probability
            total = [a + weight * x for a, x in zip(total, vector, strict=True)]
            vector = [
                sum((p * x for p, x in zip(row, vector, strict=True)), Decimal(0)) for row in matrix
            ]
            k += 1
            probability *= mean / k
        return [Fraction(value) for value in total]


def assert_encloses(result, exact, width, smallest=1e-12):
    """The exact values lie within the bounds; decimals leave a little to be said."""
    assert result.two_sided
    lower, upper = result.bounds
    slack = Fraction(1, 10**40)
    for low, value, up, computed in zip(lower, exact, upper, result.values, strict=True):
        assert Fraction(float(low)) <= value + slack
        assert value - slack <= Fraction(float(up))
        assert abs(Fraction(float(computed)) - value) <= Fraction(result.error_estimate) + slack
    assert (upper - lower <= width * np.maximum(upper, smallest)).all()


TIMES = [Fraction(1, 1000), Fraction(1, 3), Fraction(4)]


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("seed", range(4))
def test_until(device, seed, time):
    rows = rational_rates(seed)
    remain, target = models.mask(5, [0, 1, 3]), models.mask(5, [4])
    exact = summed(rows, [0, 0, 0, 0, 1], float(time), moving=[0, 1, 3])
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    result = time_bounded_until(ctmc(rows), remain, target, 0.0, float(time), environment)
    assert_encloses(result, exact, 1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_until_within_an_interval(device, seed):
    rows = rational_rates(seed)
    remain, target = models.mask(5, [0, 1, 3]), models.mask(5, [3, 4])
    later = summed(rows, [0, 0, 0, 1, 1], 0.75, moving=[0, 1])
    kept = [value if inside else 0 for value, inside in zip(later, remain, strict=True)]
    exact = summed(rows, kept, 0.25, moving=[0, 1, 3])
    result = time_bounded_until(
        ctmc(rows), remain, target, 0.25, 1.0, SolverEnvironment(device=device)
    )
    # The first phase adds the second one's absolute error to every state.
    assert_encloses(result, exact, 1e-10, smallest=1e-2)


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("seed", range(3))
def test_rewards_and_distributions(device, seed, time):
    rows, environment = rational_rates(seed), SolverEnvironment(device=device)
    amounts = [0.0, 2.5, 0.125, 0.0, 7.0]
    rewards, model = RewardStructure("r", np.array(amounts)), ctmc(rows)
    earned = cumulative_rewards_until(model, rewards, float(time), environment)
    assert_encloses(earned, summed(rows, amounts, float(time), cumulative=True), 1e-11)
    at_time = instantaneous_rewards_at(model, rewards, float(time), environment)
    assert_encloses(at_time, summed(rows, amounts, float(time)), 1e-11)
    initial = [0.0, 0.5, 0.25, 0.25, 0.0]
    there = distribution_at(model, np.array(initial), float(time), environment)
    assert_encloses(there, summed(rows, initial, float(time), forward=True), 1e-11)


def test_mass_that_gathers_in_one_state_is_within_its_bounds(device):
    size = 6
    rows = [{size - 1: Fraction(10, 3)} for _ in range(size - 1)] + [{}]
    initial = np.full(size, 1.0 / size)
    result = distribution_at(ctmc(rows), initial, 9.0, SolverEnvironment(device=device))
    assert_encloses(result, summed(rows, [float(x) for x in initial], 9.0, forward=True), 1e-11)


@pytest.mark.parametrize("share", [0.3, 1e-3, 1e-7])
@pytest.mark.parametrize(("time", "slower"), [(0.02, 1), (0.5, 1), (30.0, 1), (700.0, 1000)])
def test_what_a_narrow_window_leaves_out_is_in_the_bounds(device, monkeypatch, share, time, slower):
    monkeypatch.setattr(
        uniformisation, "poisson_weights", lambda mean, _: poisson_weights(mean, share)
    )
    environment = SolverEnvironment(device=device)
    rows = [{t: rate / slower for t, rate in row.items()} for row in rational_rates(2)]
    amounts = [0.0, 2.5, 0.125, 0.0, 7.0]
    rewards, model = RewardStructure("r", np.array(amounts)), ctmc(rows)
    there = instantaneous_rewards_at(model, rewards, time, environment)
    exact = summed(rows, amounts, time)
    assert_encloses(there, exact, 2.0)
    missing = max(abs(Fraction(float(v)) - e) for v, e in zip(there.values, exact, strict=True))
    assert missing > Fraction(1, 10**11)
    earned = cumulative_rewards_until(model, rewards, time, environment)
    assert_encloses(earned, summed(rows, amounts, time, cumulative=True), 2.0)
    moved = distribution_at(model, np.full(5, 0.2), time, environment)
    assert_encloses(moved, summed(rows, [0.2] * 5, time, forward=True), 2.0)


def test_many_sweeps_widen_the_bounds(device):
    rows = rational_rates(1)
    remain, target = models.mask(5, [0, 1, 2, 3]), models.mask(5, [4])
    widths = []
    for time in (0.01, 1.0, 100.0):
        result = time_bounded_until(
            ctmc(rows), remain, target, 0.0, time, SolverEnvironment(device=device)
        )
        lower, upper = result.bounds
        assert upper.max() <= 1.0
        widths.append(float((upper - lower)[0] / upper[0]))
    assert widths[0] < 1e-12
    assert widths == sorted(widths)
    assert 1e-12 < widths[-1] < 1e-7


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
def test_rates_of_any_size(device, scale):
    result = cumulative_rewards_until(
        models.ctmc([{1: scale}, {0: 2.0 * scale}]),
        RewardStructure("r", np.array([1.0, 1.0])),
        3.0 / scale,
        SolverEnvironment(device=device),
    )
    assert result.two_sided
    lower, upper = result.bounds
    assert (lower <= 3.0 / scale).all()
    assert (upper >= 3.0 / scale * (1.0 - 1e-15)).all()


@pytest.mark.parametrize("mean", [1e-3, 0.7, 16.0, 900.5, 3e6])
def test_weights_are_as_exact_as_the_bound_takes_them_to_be(mean):
    weights = poisson_weights(mean, 1e-24)
    span = weights.right - weights.left
    with localcontext() as context:
        context.prec = 40 + len(str(weights.right)) * 2
        centre = max(weights.left, int(mean))
        # The largest weight by Stirling's series in many digits, the others by their ratios.
        exact = {centre: _poisson(centre, mean)}
        for k in range(centre + 1, weights.right + 1):
            exact[k] = exact[k - 1] * Decimal(mean) / k
        for k in range(centre - 1, weights.left - 1, -1):
            exact[k] = exact[k + 1] * (k + 1) / Decimal(mean)
        for k in range(weights.left, weights.right + 1, max(1, span // 500)):
            computed = Decimal(float(weights.weights[k - weights.left]))
            exponent = max(0.0, -float(exact[k].ln()))
            assert abs(computed / exact[k] - 1) <= Decimal(32 * (1 + exponent) * 2.0**-53)


def _poisson(k, mean):
    """e^−λ λ^k / k!, with ln k! by Stirling's series for what is too long to multiply."""
    if k < 2000:
        logarithm = sum((Decimal(j).ln() for j in range(2, k + 1)), Decimal(0))
    else:
        n = Decimal(k)
        two_pi = Decimal("6.283185307179586476925286766559005768394338798750211641949889184615633")
        series = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5) - 1 / (1680 * n**7)
        logarithm = n * n.ln() - n + (two_pi * n).ln() / 2 + series
    return (k * Decimal(mean).ln() - Decimal(mean) - logarithm).exp()


def test_without_digits_left_nothing_is_claimed():
    assert SumError(LARGEST_RELATIVE, 0.0).proven
    assert not SumError(2.0 * LARGEST_RELATIVE, 0.0).proven
    assert not SumError(0.0, np.inf).proven


@pytest.mark.parametrize("seed", range(5))
def test_no_value_is_above_the_largest_one_to_begin_with(device, seed):
    random = np.random.default_rng(seed)
    rows = [{(i + k) % 9: float(random.random()) for k in (1, 2, 4)} for i in range(9)]
    rates, everywhere = models.csr(rows), np.ones(9, dtype=bool)
    for time_bound in (0.01, 0.7, 3.0, 40.0):
        environment = SolverEnvironment(device=device)
        start = np.ones(9)
        result = uniformisation.backward(rates, everywhere, start, time_bound, environment)
        assert result.values.max() <= 1.0
        assert result.values.min() > 1.0 - 1e-8


@pytest.mark.parametrize(
    ("last", "rate_time", "smallest", "roundings"),
    [
        # A sweep's row of one entry: the rate's own, product, division, addition, sum.
        (10**6, 0.0, 1.0, 10**6 * 5),
        # A diagonal entry of one rate: its own, sum, division, subtraction.
        (0, 1e6, 1.0, 10**6 * 4),
        # A weight of exp(−200) has an exponent that 32 roundings a unit went into.
        (0, 0.0, np.exp(-200.0), 32 * 201),
    ],
)
def test_each_rounding_of_a_sum_of_powers_counts(last, rate_time, smallest, roundings):
    matrix = models.csr([{0: 1.0}])
    weights = np.array([1.0, smallest])
    problem = SimpleNamespace(
        last=last, before=0.0, rate=1.0, weights=weights, system=SimpleNamespace(matrix=matrix)
    )
    poisson = SimpleNamespace(weights=weights, left=1000)
    error = sum_error(problem, poisson, 0.0, 1, 1.0, rate_time)
    assert roundings * 2.0**-53 <= error.relative <= 1.1 * roundings * 2.0**-53
