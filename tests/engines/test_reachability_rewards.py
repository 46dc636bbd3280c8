"""R [ F target ] of whole models: against linear algebra, strategies and PRISM's values."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from engines.errors import InvalidModelError
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.result import Status
from engines.questions.reachability_rewards import reachability_rewards
from engines.systems.one_sided import Direction
from tests.engines import models, oracles, reference

SEEDS = range(25)
CHAINS = {
    "DTMC": models.random_dtmc(41, absorbing=0.0),
    "DTMC with traps": models.random_dtmc(42, 80, 0.1),
    "DTMC of three regions": oracles.regions(ModelKind.DTMC, 46),
    "CTMC of three regions": oracles.regions(ModelKind.CTMC, 47),
    "CTMC": models.random_ctmc(43, absorbing=0.0),
    "CTMC with traps": models.random_ctmc(44, 70, 0.1),
    "several BSCCs": models.several_bsccs(),
    "one recurrent class": models.recurrent(45, 40),
    "one state": models.dtmc([{0: 1.0}]),
    "one state without exits": models.ctmc([{}]),
}


def solve(model, rewards, target, environment=None, direction=None):
    environment = SolverEnvironment(epsilon=1e-10) if environment is None else environment
    return reachability_rewards(model, rewards, target, environment, direction=direction)


@functools.cache
def small_problem(seed):
    model = oracles.small_mdp(seed)
    rewards = RewardStructure(
        "",
        oracles.sparse_rewards(seed, 6) * (seed % 2),
        oracles.sparse_rewards(seed + 500, model.matrix.num_rows),
    )
    return model, rewards, np.random.default_rng(2000 + seed).random(6) < 0.4


@functools.cache
def small_answer(seed, direction):
    model, rewards, target = small_problem(seed)
    values = (
        oracles.reachability_reward(
            step, rewards.state_rewards + rewards.choice_rewards[rows], target
        )
        for step, rows in oracles.strategies(model)
    )
    return oracles.best(direction, values)


@pytest.mark.parametrize("name", CHAINS)
def test_chains_agree_with_linear_algebra(device, name):
    model = CHAINS[name]
    size = model.num_states
    rng = np.random.default_rng(8)
    for round_number in range(4):
        rewards = RewardStructure("time", oracles.sparse_rewards(round_number, size))
        target = rng.random(size) < 0.3
        environment = SolverEnvironment(epsilon=1e-10, device=device)
        result = solve(model, rewards, target, environment)
        assert result.status is Status.CONVERGED
        earned = rewards.state_rewards * oracles.sojourns(model)
        expected = oracles.reachability_reward(oracles.dense(model), earned, target)
        np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-15)


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("seed", SEEDS)
def test_mdps_agree_with_the_best_of_all_strategies(device, seed, direction):
    model, rewards, target = small_problem(seed)
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    result = solve(model, rewards, target, environment, direction)
    assert result.status is Status.CONVERGED
    expected = small_answer(seed, direction)
    np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-15)


def test_the_small_problems_have_infinite_finite_and_zero_values():
    for direction in Direction:
        values = np.concatenate([small_answer(seed, direction) for seed in SEEDS])
        for kind in (np.isinf(values), values == 0.0, np.isfinite(values) & (values > 0.0)):
            assert kind.sum() >= 10


@pytest.mark.parametrize("method", [Method.AUTO, Method.VALUE_ITERATION])
def test_a_cycle_without_rewards_does_not_make_the_minimum_zero(device, method):
    model, choice_rewards = oracles.zero_loops()
    rewards = RewardStructure("price", np.zeros(4), choice_rewards)
    environment = SolverEnvironment(method=method, epsilon=1e-10, device=device)
    result = solve(model, rewards, models.mask(4, [3]), environment, Direction.MINIMISE)
    np.testing.assert_allclose(result.values, [4.0, 4.0, 4.0, 0.0], rtol=1e-8)
    # Whoever may go round for ever need not reach the target.
    result = solve(model, rewards, models.mask(4, [3]), environment, Direction.MAXIMISE)
    np.testing.assert_array_equal(result.values, [np.inf, np.inf, np.inf, 0.0])


def test_a_choice_that_may_end_in_a_trap_is_not_taken_for_a_minimum(device):
    # State 0: for 1, a half to the trap 2; for 6, surely on. Inside the cycle {0, 1}, free of
    # charge, so that the choice into the trap belongs to a state of a quotient.
    model = models.mdp([[{1: 1.0}, {2: 0.5, 3: 0.5}], [{0: 1.0}, {3: 1.0}], [{2: 1.0}], [{3: 1.0}]])
    rewards = RewardStructure("", np.zeros(4), np.array([0.0, 1.0, 0.0, 6.0, 0.0, 0.0]))
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    result = solve(model, rewards, models.mask(4, [3]), environment, Direction.MINIMISE)
    np.testing.assert_allclose(result.values, [6.0, 6.0, np.inf, 0.0], rtol=1e-8)


def test_a_slow_price_for_waiting_does_not_end_the_sweeps_early():
    # Waiting costs little a step, leaving costs 1: sweeps climb by little at a time.
    model = models.mdp([[{0: 1.0}, {1: 1.0}], [{1: 1.0}]])
    rewards = RewardStructure("", np.zeros(2), np.array([1e-4, 1.0, 0.0]))
    result = solve(
        model,
        rewards,
        models.mask(2, [1]),
        SolverEnvironment(epsilon=1e-3),
        Direction.MINIMISE,
    )
    error = abs(result.values[0] - 1.0)
    assert error <= 2e-3 or result.status is not Status.CONVERGED


@pytest.mark.parametrize("direction", Direction)
def test_the_caller_keeps_its_arrays(direction):
    model, rewards, target = small_problem(3)
    before = [
        array.copy()
        for array in (model.matrix.values, rewards.state_rewards, rewards.choice_rewards, target)
    ]
    solve(model, rewards, target, direction=direction)
    after = (model.matrix.values, rewards.state_rewards, rewards.choice_rewards, target)
    for kept, now in zip(before, after, strict=True):
        np.testing.assert_array_equal(kept, now)


@pytest.mark.parametrize("method", [Method.JACOBI, Method.JOR, Method.POWER])
@pytest.mark.parametrize("convention", Convention)
@pytest.mark.parametrize("name", ["DTMC", "CTMC of three regions", "one recurrent class"])
def test_named_methods_sweep_as_the_reference_does(name, convention, method):
    model = CHAINS[name]
    target = models.mask(model.num_states, [1, 30])
    environment = SolverEnvironment(method=method, convention=convention)
    earned = models.random_rewards(9, model.num_states)
    problem = models.reach_reward(model, target, earned)
    values, iterations = reference.solve_reachability(
        model, problem.unknown, problem.start, environment, rewards=earned
    )
    result = solve(model, RewardStructure("", earned), target, environment)
    assert result.iterations == iterations
    np.testing.assert_allclose(result.values, values, rtol=1e-12)


@pytest.mark.parametrize("direction", Direction)
def test_a_named_value_iteration_sweeps_as_the_reference_does(direction):
    # All choices earn something, so there is no end component to collapse.
    model, target = models.random_mdp(7, absorbing=0.05), models.mask(50, [0, 9])
    earned = models.random_rewards(6, model.matrix.num_rows)
    problem = models.reach_reward(model, target, earned, direction)
    environment = SolverEnvironment(method=Method.VALUE_ITERATION)
    values, iterations = reference.solve_reachability(
        model, problem.unknown, problem.start, environment, rewards=earned, direction=direction
    )
    rewards = RewardStructure("", np.zeros(50), earned)
    result = solve(model, rewards, target, environment, direction)
    if problem.unknown.any():
        assert result.iterations == iterations
    np.testing.assert_allclose(result.values, values, rtol=1e-12)


def test_nothing_earned_and_nothing_unknown_take_no_sweep():
    model = models.gamblers_ruin(6)
    both_ends, size = models.mask(7, [0, 6]), 7
    result = solve(model, RewardStructure("", np.zeros(size)), both_ends)
    assert (result.iterations, result.values.max()) == (0, 0.0)
    result = solve(model, RewardStructure("", np.ones(size)), models.mask(7, [6]))
    assert result.iterations == 0
    np.testing.assert_array_equal(result.values, [np.inf] * 6 + [0.0])


def test_rewards_that_do_not_fit_are_refused_by_name():
    chain, target = models.gamblers_ruin(2), models.mask(3, [0, 2])
    with pytest.raises(InvalidModelError, match=r'"fuel": state 1 has reward -2\.0'):
        solve(chain, RewardStructure("fuel", np.array([0.0, -2.0, 1.0])), target)
    with pytest.raises(InvalidModelError, match="state 2 has reward nan"):
        solve(chain, RewardStructure("", np.array([0.0, 1.0, np.nan])), target)
    with pytest.raises(InvalidModelError, match="state rewards for 3 states"):
        solve(chain, RewardStructure("", np.zeros(2)), target)
    with pytest.raises(InvalidModelError, match="a DTMC has no choices"):
        solve(chain, RewardStructure("", np.zeros(3), np.zeros(3)), target)
    mdp, goal = models.end_components(), models.mask(5, [3])
    wrong = np.zeros(8)
    wrong[5] = -1.0
    with pytest.raises(InvalidModelError, match=r"choice 5, of state 2, has reward -1\.0"):
        solve(mdp, RewardStructure("", np.zeros(5), wrong), goal, direction=models.MAX)
    with pytest.raises(InvalidModelError, match="rewards for 8 choices"):
        solve(mdp, RewardStructure("", np.zeros(5), np.zeros(7)), goal, direction=models.MAX)
    with pytest.raises(ValueError, match="direction"):
        solve(mdp, RewardStructure("", np.zeros(5)), goal)
