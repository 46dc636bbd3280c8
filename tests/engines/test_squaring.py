"""Long times and stiff rates: errors are within what is claimed, and soon told."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from engines.devices import powers
from engines.errors import InvalidModelError
from engines.model.environment import SolverEnvironment
from engines.model.explicit import RewardStructure
from engines.model.progress import announcement
from engines.questions import uniformisation
from engines.questions.time_bounded import (
    cumulative_rewards_until,
    distribution_at,
    instantaneous_rewards_at,
    time_bounded_until,
)
from tests.engines import models
from tests.engines.test_uniformisation_error import ctmc

BITS = 500
"""What is left of each number."""

STIFF = {
    "rare failure": [{1: 2}, {0: 10**6}],
    "rare repair": [{1: 10**6}, {0: 2}],
    "three scales": [{1: Fraction(1, 1000)}, {0: 10**6, 2: 3}, {0: 5}],
    "a way out": [{1: 1000}, {0: 10**5, 2: Fraction(1, 100)}, {}],
    "no double for an exit rate": [{1: 10**8 + 10, 2: Fraction(1, 10**4)}, {0: 10**8}, {0: 10**8}],
}
TIMES = [1e-6, 1e-3, 0.02, 1.0, 300.0, 1e5]


def rounded(number):
    return Fraction(round(number * 2**BITS), 2**BITS)


def product(left, right):
    columns = list(zip(*right, strict=True))
    return [
        [rounded(sum(map(Fraction.__mul__, row, column))) for column in columns] for row in left
    ]


def exact_matrices(rows, time):
    """e^(Q t), and its integral from 0 to t: a Taylor series of a short time, doubled."""
    size = len(rows)
    unit = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    rates = [[Fraction(float(row.get(j, 0))) for j in range(size)] for row in rows]
    for i, row in enumerate(rates):
        row[i] = -sum(row)
    step, doublings = Fraction(time), 0
    while step * max(-row[i] for i, row in enumerate(rates)) > Fraction(1, 4):
        step, doublings = step / 2, doublings + 1
    term, moved = unit, unit
    earned = [[x * step for x in row] for row in unit]
    for k in range(1, 90):
        term = [[x * step / k for x in row] for row in product(term, rates)]
        moved = [list(map(Fraction.__add__, a, b)) for a, b in zip(moved, term, strict=True)]
        part = [[x * step / (k + 1) for x in row] for row in term]
        earned = [list(map(Fraction.__add__, a, b)) for a, b in zip(earned, part, strict=True)]
    for _ in range(doublings):
        later = product(moved, earned)
        earned = [list(map(Fraction.__add__, a, b)) for a, b in zip(earned, later, strict=True)]
        moved = product(moved, moved)
    return moved, earned


def assert_claimed(result, exact):
    assert result.two_sided
    assert np.isfinite(result.values).all()
    slack = Fraction(1, 10**100)
    for low, up, value, right in zip(*result.bounds, result.values, exact, strict=True):
        assert Fraction(float(low)) <= right + slack
        assert right - slack <= Fraction(float(up))
        assert abs(Fraction(float(value)) - right) <= Fraction(result.error_estimate) + slack


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("name", STIFF)
def test_stiff_chains_are_as_accurate_as_claimed(name, time):
    rows, environment = STIFF[name], SolverEnvironment()
    model, size = ctmc(rows), len(rows)
    moved, earned = exact_matrices(rows, time)
    amounts = np.arange(size) + 0.5
    weights = [Fraction(float(x)) for x in amounts]
    rewards = RewardStructure("", amounts)
    questions = ((instantaneous_rewards_at, moved), (cumulative_rewards_until, earned))
    for ask, matrix in questions:
        exact = [sum(map(Fraction.__mul__, row, weights)) for row in matrix]
        assert_claimed(ask(model, rewards, time, environment), exact)
    there = distribution_at(model, np.eye(size)[0], time, environment)
    assert_claimed(there, moved[0])


@pytest.mark.parametrize("time", [1e4, 1e6, 1e9])
def test_until_over_a_long_time_is_squared(time):
    size = 40
    rows = [{i + 1: 1000, i - 1: 999} if 0 < i < size - 1 else {} for i in range(size)]
    rows[0] = {1: 1000}
    model = ctmc(rows)
    everywhere, target = np.ones(size, dtype=np.bool_), np.arange(size) == size - 1
    result = time_bounded_until(model, everywhere, target, 0.0, time, SolverEnvironment())
    assert result.two_sided
    assert result.iterations < 1000
    lower, upper = result.bounds
    assert (upper - lower <= 1e-5).all()
    if time > 1e5:
        assert (upper == 1.0).all()
        assert lower.min() >= 1.0 - 1e-5


def test_squares_agree_with_the_sum(monkeypatch):
    rows = [{1: 700, 2: 1}, {0: 3}, {3: Fraction(1, 4)}, {0: 20}]
    model, environment = ctmc(rows), SolverEnvironment(epsilon=1e-12)
    rewards = RewardStructure("", np.array([0.0, 2.0, 1e3, 0.5]))
    squared = [
        ask(model, rewards, 200.0, environment)
        for ask in (instantaneous_rewards_at, cumulative_rewards_until)
    ]
    monkeypatch.setattr(uniformisation, "squared_sum", lambda *_: None)
    for ask, short in zip(
        (instantaneous_rewards_at, cumulative_rewards_until), squared, strict=True
    ):
        summed = ask(model, rewards, 200.0, environment)
        assert summed.iterations > short.iterations
        # What squaring claims is far less than what the sweeps do.
        assert short.error_estimate < 0.1 * summed.error_estimate
        assert np.abs(summed.values - short.values).max() <= summed.error_estimate


def test_a_long_sum_is_announced_before_it_starts(monkeypatch):
    monkeypatch.setattr(uniformisation, "squared_sum", lambda *_: None)
    monkeypatch.setattr(powers, "LONG_SUM", 1e4)
    model, rewards = ctmc([{1: 2}, {0: 1}]), RewardStructure("", np.ones(2))
    for time, announced in ((1.0, False), (5000.0, True)):
        reports = []
        environment = SolverEnvironment()
        instantaneous_rewards_at(model, rewards, time, environment, progress=reports.append)
        assert (reports[0].iterations == 0) is announced
    assert announcement(reports[0]).startswith("Starting iterations... (11,")


def test_a_time_that_leaves_no_digits_is_refused():
    model, rewards = ctmc([{1: 2}, {}]), RewardStructure("", np.ones(2))
    with pytest.raises(InvalidModelError, match="time bound too big"):
        instantaneous_rewards_at(model, rewards, 1e18, SolverEnvironment())


def test_large_chains_are_swept():
    size = 600
    model = models.birth_death(size)
    result = instantaneous_rewards_at(
        model, RewardStructure("", np.ones(size)), 10.0, SolverEnvironment()
    )
    assert "squared" not in result.note
