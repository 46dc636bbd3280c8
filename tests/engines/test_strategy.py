"""Optimal strategies: the chain that a strategy leaves has the values that the result has."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.methods.strategy import SLACKS, optimal_rows, rows_towards
from engines.model.csr import CsrMatrix
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.total_rewards import total_rewards
from engines.questions.until import until_probabilities
from engines.systems.one_sided import SweepSystem
from tests.engines import models, oracles

METHODS = [
    Method.AUTO,
    Method.VALUE_ITERATION,
    Method.POLICY_ITERATION,
    Method.MODIFIED_POLICY_ITERATION,
]
SEEDS = range(25)
BOTH = [models.MIN, models.MAX]


def environment(method):
    return SolverEnvironment(
        method=method, epsilon=1e-11, max_iterations=100_000, max_iterations_named=True
    )


def completed(model, strategy, seed):
    """The strategy, with any choice where it says that any will do."""
    groups = model.row_group_offsets
    rng = np.random.default_rng(seed)
    anything = rng.integers(groups[:-1], groups[1:])
    rows = np.where(strategy >= 0, strategy, anything)
    assert (rows >= groups[:-1]).all()
    assert (rows < groups[1:]).all()
    return rows


def everywhere(model):
    return np.ones(model.num_states, dtype=bool)


def tied(model):
    """The model with each choice doubled, and a choice that stays wherever that is wanted."""
    states = []
    matrix, groups = model.matrix, model.row_group_offsets
    for state in range(model.num_states):
        choices = []
        for row in range(groups[state], groups[state + 1]):
            entries = slice(matrix.row_offsets[row], matrix.row_offsets[row + 1])
            columns = matrix.columns[entries].tolist()
            choice = dict(zip(columns, matrix.values[entries].tolist(), strict=True))
            choices += [{state: 1.0}, choice, choice]
        states.append(choices)
    return models.mdp(states)


@functools.cache
def best_until(seed, direction):
    """A small MDP, where to remain, the target, and the best probabilities of all strategies."""
    model = oracles.small_mdp(seed)
    rng = np.random.default_rng(seed)
    remain, target = rng.random(6) < 0.8, rng.random(6) < 0.25
    found = (oracles.until(step, remain, target) for step, _ in oracles.strategies(model))
    return model, remain, target, oracles.best(direction, found)


@functools.cache
def best_reward(seed, direction):
    """A small MDP, the target, the rewards, and the best that all strategies earn on the way."""
    model = oracles.small_mdp(seed)
    target = np.random.default_rng(seed).random(6) < 0.3
    earned = oracles.sparse_rewards(seed, model.matrix.num_rows)
    found = (
        oracles.reachability_reward(step, earned[rows], target)
        for step, rows in oracles.strategies(model)
    )
    return model, target, earned, oracles.best(direction, found)


@functools.cache
def best_total(seed, direction):
    """A small MDP, the rewards, and the best that all strategies earn in all."""
    model = oracles.small_mdp(seed)
    earned = oracles.sparse_rewards(seed, model.matrix.num_rows)
    found = (oracles.total_reward(step, earned[rows]) for step, rows in oracles.strategies(model))
    return model, earned, oracles.best(direction, found)


def same(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("method", METHODS)
def test_the_chain_of_an_until_strategy_has_the_optimal_probabilities(method, direction):
    for seed in SEEDS:
        model, remain, target, best = best_until(seed, direction)
        result = until_probabilities(
            model, remain, target, environment(method), direction=direction, want_strategy=True
        )
        same(result.values, best)
        rows = completed(model, result.strategy, seed)
        same(oracles.until(oracles.dense(model)[rows], remain, target), best)


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("method", METHODS)
def test_the_chain_of_a_reward_strategy_has_the_optimal_rewards(method, direction):
    for seed in SEEDS:
        model, target, earned, best = best_reward(seed, direction)
        result = reachability_rewards(
            model,
            RewardStructure("", np.zeros(6), earned),
            target,
            environment(method),
            direction=direction,
            want_strategy=True,
        )
        same(result.values, best)
        rows = completed(model, result.strategy, seed)
        chain = oracles.dense(model)[rows]
        same(oracles.reachability_reward(chain, earned[rows], target), best)


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("method", METHODS)
def test_the_chain_of_a_total_reward_strategy_has_the_optimal_rewards(method, direction):
    for seed in SEEDS:
        model, earned, best = best_total(seed, direction)
        result = total_rewards(
            model,
            RewardStructure("", np.zeros(6), earned),
            environment(method),
            direction=direction,
            want_strategy=True,
        )
        same(result.values, best)
        rows = completed(model, result.strategy, seed)
        same(oracles.total_reward(oracles.dense(model)[rows], earned[rows]), best)


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("method", METHODS)
def test_ties_everywhere_and_a_way_to_stay_everywhere(method, direction):
    for seed in range(12):
        model = tied(models.random_mdp(seed, 15))
        target = models.mask(15, [1, 2])
        result = until_probabilities(
            model,
            everywhere(model),
            target,
            environment(method),
            direction=direction,
            want_strategy=True,
        )
        rows = completed(model, result.strategy, seed)
        chain = oracles.dense(model)[rows]
        same(oracles.until(chain, everywhere(model), target), result.values)
        if direction is models.MIN:
            assert (result.values[~target] == 0.0).all()

        earned = np.tile([0.0, 1.0, 1.0], model.matrix.num_rows // 3)
        rewards = RewardStructure("", np.zeros(15), earned)
        result = reachability_rewards(
            model, rewards, target, environment(method), direction=direction, want_strategy=True
        )
        rows = completed(model, result.strategy, seed)
        chain = oracles.dense(model)[rows]
        same(oracles.reachability_reward(chain, earned[rows], target), result.values)


@pytest.mark.parametrize("method", METHODS)
def test_a_choice_that_keeps_the_value_without_progress_is_not_taken(method):
    # From 0 and from 1 one may go round for ever; the way out, of the same value, comes last.
    model = models.mdp(
        [
            [{1: 1.0}, {0: 1.0}, {2: 0.5, 3: 0.5}],
            [{0: 1.0}, {1: 1.0}],
            [{2: 1.0}],
            [{3: 1.0}],
        ]
    )
    result = until_probabilities(
        model,
        everywhere(model),
        models.mask(4, [2]),
        environment(method),
        direction=models.MAX,
        want_strategy=True,
    )
    np.testing.assert_allclose(result.values, [0.5, 0.5, 1.0, 0.0])
    np.testing.assert_array_equal(result.strategy[:2], [2, 3])
    np.testing.assert_array_equal(result.strategy[2:], [-1, -1])


@pytest.mark.parametrize("method", METHODS)
def test_zero_reward_loops_are_left_for_the_target(method):
    model, earned = oracles.zero_loops()
    target = models.mask(4, [3])
    result = reachability_rewards(
        model,
        RewardStructure("", np.zeros(4), earned),
        target,
        environment(method),
        direction=models.MIN,
        want_strategy=True,
    )
    chain = oracles.dense(model)[completed(model, result.strategy, 0)]
    rows = completed(model, result.strategy, 0)
    found = oracles.reachability_reward(chain, earned[rows], target)
    assert np.isfinite(found).all()
    same(found, result.values)


@given(
    seed=st.integers(0, 10**6),
    size=st.integers(2, 25),
    direction=st.sampled_from(BOTH),
    rewarded=st.booleans(),
    ties=st.booleans(),
)
def test_strategies_of_any_model_reproduce_the_values(seed, size, direction, rewarded, ties):
    model = models.random_mdp(seed, size, absorbing=0.15, loops=0.5)
    model = tied(model) if ties else model
    target = np.random.default_rng(seed).random(size) < 0.2
    keywords = {"direction": direction, "want_strategy": True}
    if rewarded:
        earned = oracles.sparse_rewards(seed, model.matrix.num_rows)
        rewards = RewardStructure("", np.zeros(size), earned)
        result = reachability_rewards(model, rewards, target, environment(Method.AUTO), **keywords)
    else:
        result = until_probabilities(
            model, everywhere(model), target, environment(Method.AUTO), **keywords
        )
    rows = completed(model, result.strategy, seed)
    chain = oracles.dense(model)[rows]
    if rewarded:
        same(oracles.reachability_reward(chain, earned[rows], target), result.values)
    else:
        same(oracles.until(chain, everywhere(model), target), result.values)


def test_a_strategy_does_not_change_the_values():
    for name, problem in models.mdp_problems().items():
        if problem.rewards is not None:
            continue
        target = problem.start == 1.0
        keywords = {"direction": problem.direction}
        plain, with_strategy = (
            until_probabilities(
                problem.model,
                everywhere(problem.model),
                target,
                environment(Method.AUTO),
                want_strategy=want,
                **keywords,
            )
            for want in (False, True)
        )
        assert plain.strategy is None, name
        np.testing.assert_array_equal(plain.values, with_strategy.values)


def test_a_chain_has_no_strategy():
    model = models.gamblers_ruin(5)
    result = until_probabilities(
        model, everywhere(model), models.mask(6, [5]), SolverEnvironment(), want_strategy=True
    )
    assert result.strategy is None


def test_values_that_an_iteration_left_inexact_still_give_a_way_out():
    # The loop of state 0 seems better by what is left of an iteration.
    model = models.mdp([[{0: 1.0}, {1: 0.5, 2: 0.5}], [{1: 1.0}], [{2: 1.0}]])
    system = SweepSystem(
        CsrMatrix(
            model.matrix.row_offsets[:3], model.matrix.columns[:3], model.matrix.values[:3], 3
        ),
        np.array([0.0, 1.0, 0.0]),
        states=np.array([0]),
        group_offsets=np.array([0, 2]),
        direction=models.MAX,
    )
    for slack in SLACKS[1:-1]:
        x = np.array([0.5 * (1.0 + slack / 2.0), 1.0, 0.0])
        assert optimal_rows(system, x, np.array([False, True, True])).tolist() == [1]


def test_rows_towards_a_goal_take_the_first_that_steps_nearer():
    matrix = models.csr([{0: 1.0}, {1: 0.5, 0: 0.5}, {2: 1.0}, {2: 0.5, 0: 0.5}, {2: 1.0}], 3)
    owner = np.array([0, 0, 1, 1, 2])
    goal = models.mask(3, [2])
    chosen = rows_towards(matrix, owner, np.ones(5, dtype=bool), goal)
    assert chosen.tolist() == [1, 2, -1]
    allowed = np.array([True, True, False, True, True])
    assert rows_towards(matrix, owner, allowed, goal).tolist() == [1, 3, -1]
    assert rows_towards(matrix, owner, allowed, models.mask(3, [])).tolist() == [-1, -1, -1]


def test_a_long_line_takes_a_choice_each():
    size = 20_000
    columns = np.repeat(np.arange(size), 2)
    columns[1::2] = np.minimum(np.arange(size) + 1, size - 1)
    matrix = CsrMatrix(
        np.arange(2 * size + 1, dtype=np.int32), columns.astype(np.int32), np.ones(2 * size), size
    )
    groups = np.arange(0, 2 * size + 1, 2, dtype=np.int32)
    model = ExplicitModel(ModelKind.MDP, matrix, groups).check()
    result = until_probabilities(
        model,
        everywhere(model),
        models.mask(size, [size - 1]),
        SolverEnvironment(),
        direction=models.MAX,
        want_strategy=True,
    )
    np.testing.assert_array_equal(result.strategy[:-1], 2 * np.arange(size - 1) + 1)
