"""Total rewards, with bounds and without, against elimination over the rationals."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from engines.errors import InvalidModelError
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import RewardStructure
from engines.questions.total_rewards import total_rewards
from tests.engines import exact, models

METHODS = [Method.AUTO, Method.INTERVAL, Method.OPTIMISTIC]
"""Of these the first has no bounds, unless they are asked for."""
INFINITE = float("inf")


def total(rows, payments):
    """R [ C ] of each state of a chain: infinite where a cycle that pays may be entered."""
    everywhere = set(range(len(rows)))
    reach = [exact.reaching(rows, {s}, everywhere) for s in everywhere]
    recurrent = {s for s in everywhere if all(t in reach[s] for t in everywhere if s in reach[t])}
    paying = {s for s in recurrent if payments[s] > 0}
    infinite = exact.reaching(rows, paying, everywhere) if paying else set()
    unknown = sorted(everywhere - infinite - recurrent)
    values = exact.solve(rows, unknown, {s: payments[s] for s in unknown})
    return [INFINITE if s in infinite else values.get(s, Fraction(0)) for s in everywhere]


def best_total(choices, payments, direction):
    first = list(itertools.accumulate((len(rows) for rows in choices), initial=0))
    pick = min if direction is models.MIN else max
    values = []
    for strategy in itertools.product(*(range(len(rows)) for rows in choices)):
        rows = [choices[s][k] for s, k in enumerate(strategy)]
        values.append(total(rows, [payments[first[s] + k] for s, k in enumerate(strategy)]))
    return [pick(of_state) for of_state in zip(*values, strict=True)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(8))
def test_chains(device, seed, method):
    rows = exact.random_chain(seed)
    payments = exact.random_payments(seed, len(rows))
    if seed % 2:
        # Nothing is earned where the chain may stay for ever.
        payments = [
            Fraction(0) if p == INFINITE else q
            for p, q in zip(total(rows, [Fraction(1)] * len(rows)), payments, strict=True)
        ]
        payments[0] = Fraction(0)
    environment = SolverEnvironment(method=method, device=device)
    rewards = RewardStructure("", exact.array(payments))
    result = total_rewards(exact.dtmc(rows), rewards, environment)
    exact.assert_answers(result, total(rows, payments), 1e-6)


@pytest.mark.parametrize("bounds", [False, True])
def test_most_of_what_is_transient_has_a_finite_total(device, bounds):
    rows = [{1: Fraction(1, 3), 2: Fraction(2, 3)}, {0: Fraction(1, 7), 3: Fraction(6, 7)}]
    rows += [{2: Fraction(1, 5), 0: Fraction(4, 5)}, {4: Fraction(1)}, {3: Fraction(1)}]
    payments = [Fraction(3), Fraction(1, 4), Fraction(2), Fraction(0), Fraction(0)]
    rewards = RewardStructure("", exact.array(payments))
    result = total_rewards(
        exact.dtmc(rows), rewards, SolverEnvironment(device=device, bounds=bounds)
    )
    values = total(rows, payments)
    assert INFINITE not in values
    exact.assert_answers(result, values, 1e-6)


@pytest.mark.parametrize("bounds", [False, True])
def test_time_in_a_continuous_chain(device, bounds):
    rates = [{1: 1.0 / 3.0, 2: 2.0}, {0: 4.0}, {}]
    result = total_rewards(
        models.ctmc(rates),
        RewardStructure("", np.array([1.0, 1.0, 0.0])),
        SolverEnvironment(device=device, bounds=bounds),
    )
    # From 0: 1 / (1/3 + 2) + (1/7) (1/4 + x).
    value = (Fraction(3, 7) + Fraction(1, 28)) / Fraction(6, 7)
    exact.assert_answers(result, [value, value + Fraction(1, 4), Fraction(0)], 1e-6)


@pytest.mark.parametrize("direction", [models.MIN, models.MAX])
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("bounds", [False, True])
def test_decisions(device, bounds, seed, direction):
    choices = exact.random_choices(seed)
    # A way out of everything, so that not all is infinite.
    choices = [
        [*rows, {len(choices): Fraction(1, 3), s: Fraction(2, 3)}] for s, rows in enumerate(choices)
    ]
    choices.append([{len(choices): Fraction(1)}])
    payments = exact.random_payments(seed, sum(len(rows) for rows in choices))
    payments[-1] = Fraction(0)
    model = exact.mdp(choices)
    rewards = RewardStructure("", np.zeros(len(choices)), exact.array(payments))
    result = total_rewards(
        model, rewards, SolverEnvironment(device=device, bounds=bounds), direction=direction
    )
    exact.assert_answers(result, best_total(choices, payments, direction), 1e-6)


@pytest.mark.parametrize("bounds", [False, True])
def test_the_maximum_with_ends_that_nobody_leaves(device, bounds):
    choices = [
        [{1: Fraction(1, 3), 2: Fraction(2, 3)}, {0: Fraction(1, 5), 3: Fraction(4, 5)}],
        [{0: Fraction(1, 2), 2: Fraction(1, 2)}],
        [{2: Fraction(1)}],
        [{3: Fraction(1, 2), 4: Fraction(1, 2)}, {4: Fraction(1)}],
        [{3: Fraction(1)}],
    ]
    payments = [Fraction(k) for k in (1, 2, 3, 0, 0, 0, 0)]
    rewards = RewardStructure("", np.zeros(5), exact.array(payments))
    result = total_rewards(
        exact.mdp(choices),
        rewards,
        SolverEnvironment(device=device, bounds=bounds),
        direction=models.MAX,
    )
    values = best_total(choices, payments, models.MAX)
    assert values[0] > 0
    exact.assert_answers(result, values, 1e-6)


def test_the_maximum_leaves_a_free_cycle_where_that_pays(device):
    model = models.mdp([[{0: 1.0}, {1: 1.0}], [{1: 1.0}]])
    rewards = RewardStructure("", np.zeros(2), np.array([0.0, 3.0, 0.0]))
    environment = SolverEnvironment(device=device, bounds=True)
    most = total_rewards(model, rewards, environment, direction=models.MAX)
    assert most.bounds[0][0] <= 3.0 <= most.bounds[1][0] <= 3.0 + 1e-5
    least = total_rewards(model, rewards, environment, direction=models.MIN)
    assert least.bounds[1].tolist() == [0.0, 0.0]


def test_what_does_not_fit_is_refused():
    model = models.mdp([[{0: 1.0}]])
    with pytest.raises(ValueError, match="direction"):
        total_rewards(model, RewardStructure("", np.zeros(1), np.zeros(1)), SolverEnvironment())
    with pytest.raises(InvalidModelError, match="negative"):
        total_rewards(
            models.dtmc([{0: 1.0}]), RewardStructure("", -np.ones(1)), SolverEnvironment()
        )
