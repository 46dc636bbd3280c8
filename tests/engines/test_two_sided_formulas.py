"""LTL and co-safe rewards between bounds, against elimination over the rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from engines.automata import ltl
from engines.model.environment import SolverEnvironment as Environment
from engines.model.explicit import RewardStructure
from engines.questions.cosafe_rewards import cosafe_rewards
from engines.questions.ltl import ltl_probabilities
from tests.engines import exact, models

GOAL = ltl.atom("goal")
EPSILON = 1e-6


def goal_of(size, seed):
    return models.mask(size, np.random.default_rng(seed + 77).choice(size, 2, replace=False))


def assert_within(result, values):
    """The values lie between bounds that are narrow, relative or absolute."""
    assert result.two_sided
    lower, upper = result.bounds
    assert len(lower) == len(upper) == len(result.values) == len(values)
    for low, value, up, middle in zip(lower, values, upper, result.values, strict=True):
        if value == float("inf"):
            assert low == up == middle == value
            continue
        assert Fraction(float(low)) <= value <= Fraction(float(up))
        assert low <= middle <= up
        assert up - low <= EPSILON * max(1.0, float(value))


@pytest.mark.parametrize("seed", range(6))
def test_again_and_again_in_a_chain(device, seed):
    rows, everywhere = exact.random_chain(seed), set(range(12))
    goal = goal_of(12, seed)
    reach = [exact.reaching(rows, {s}, everywhere) for s in everywhere]
    recurrent = {s for s in everywhere if all(t in reach[s] for t in everywhere if s in reach[t])}
    won = {s for s in recurrent if any(goal[t] for t in everywhere if s in reach[t])}
    values = exact.until(rows, everywhere, won)
    formula = ltl.always(ltl.eventually(GOAL))
    environment = Environment(device=device, bounds=True)
    result = ltl_probabilities(exact.dtmc(rows), formula, {"goal": goal}, environment)
    assert_within(result, values)


@pytest.mark.parametrize("direction", [models.MIN, models.MAX])
@pytest.mark.parametrize("seed", range(8))
def test_decisions(device, seed, direction):
    choices, goal = exact.random_choices(seed), goal_of(5, seed)
    everywhere = set(range(5))
    reached = exact.best_until(choices, everywhere, set(np.flatnonzero(goal)), direction)
    pick = min if direction is models.MIN else max
    values = [pick(sum(p * reached[t] for t, p in row.items()) for row in rows) for rows in choices]
    formula = ltl.next_(ltl.eventually(GOAL))
    result = ltl_probabilities(
        exact.mdp(choices),
        formula,
        {"goal": goal},
        Environment(device=device, bounds=True),
        direction=direction,
    )
    assert_within(result, values)


@pytest.mark.parametrize("formula", [ltl.disjunction(GOAL, ltl.negation(GOAL))])
def test_what_the_formula_alone_decides(formula):
    result = ltl_probabilities(
        models.several_bsccs(),
        formula,
        {"goal": models.mask(8, [1])},
        Environment(bounds=True),
    )
    assert result.two_sided
    assert (result.values == 1.0).all()


@pytest.mark.parametrize("seed", range(6))
def test_rewards_of_a_chain_until_the_goal_holds_after_a_step(device, seed):
    rows, goal = exact.random_chain(seed), goal_of(12, seed)
    payments = exact.random_payments(seed, 12)
    later = exact.reward(rows, payments, set(np.flatnonzero(goal)))
    values = [
        float("inf")
        if any(later[t] == float("inf") for t in row)
        else payments[s] + sum(p * later[t] for t, p in row.items())
        for s, row in enumerate(rows)
    ]
    result = cosafe_rewards(
        exact.dtmc(rows),
        RewardStructure("", exact.array(payments)),
        ltl.next_(ltl.eventually(GOAL)),
        {"goal": goal},
        Environment(device=device, bounds=True),
    )
    assert_within(result, values)


def test_without_being_asked_for_there_are_no_bounds():
    rows, goal = exact.random_chain(0), goal_of(12, 0)
    formula = ltl.next_(ltl.eventually(GOAL))
    result = ltl_probabilities(exact.dtmc(rows), formula, {"goal": goal}, Environment())
    assert result.bounds is None
