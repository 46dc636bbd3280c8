"""R [ C ] of whole models: against linear algebra, strategies and PRISM's values."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from engines.errors import InvalidModelError
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.result import Status
from engines.questions.total_rewards import total_rewards
from engines.systems.one_sided import Direction
from tests.engines import models, oracles, reference

SEEDS = range(30)
SWAP = ({4: 1.0}, {3: 1.0}, {4: 0.5, 3: 0.5})
"""A last choice of states 3, 4 and 5 that leads nowhere else."""


def solve(model, rewards, environment=None, direction=None):
    environment = SolverEnvironment(epsilon=1e-10) if environment is None else environment
    return total_rewards(model, rewards, environment, direction=direction)


def chain_with_traps(kind, seed, size=60):
    """A chain of four BSCCs and rewards of its states; all but the last BSCC earn nothing."""
    model = oracles.regions(ModelKind(kind), seed, size)
    earned = oracles.sparse_rewards(seed, size)
    for members in oracles.recurrent_classes(oracles.dense(model)):
        if not members[-1]:
            earned[members] = 0.0
    return model, earned


@functools.cache
def small_problem(seed):
    """A small MDP; two in three earn in states that are left, or in free cycles left at a price."""
    model = oracles.small_mdp(seed)
    if seed % 3:
        rng = np.random.default_rng(3000 + seed)
        choices = model.row_group_offsets
        rows = reference.rows_of(model.matrix)
        lower = [rows[choices[s] : choices[s + 1]] for s in range(3)]
        lower = [[{min(j, 2): 1.0} for j in map(min, state)] for state in lower]
        upper = [[models.distribution(rng, s, 3), {s: 0.5, s - 3: 0.5}] for s in (3, 4, 5)]
        model = models.mdp([*lower, *([*c, free] for c, free in zip(upper, SWAP, strict=True))])
    states = oracles.sparse_rewards(seed, 6) * (seed % 2) * (seed % 3 == 0)
    earned = oracles.sparse_rewards(seed + 500, model.matrix.num_rows)
    if seed % 3:
        earned[: model.row_group_offsets[3]] = 0.0
        earned[model.row_group_offsets[4:] - 1] = 0.0
    return model, RewardStructure("", states, earned)


@functools.cache
def small_answer(seed, direction):
    model, rewards = small_problem(seed)
    values = (
        oracles.total_reward(step, rewards.state_rewards + rewards.choice_rewards[rows])
        for step, rows in oracles.strategies(model)
    )
    return oracles.best(direction, values)


@pytest.mark.parametrize("kind", ["DTMC", "CTMC"])
@pytest.mark.parametrize("seed", range(5))
def test_chains_agree_with_linear_algebra(device, kind, seed):
    model, earned = chain_with_traps(kind, seed)
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    result = solve(model, RewardStructure("", earned), environment)
    assert result.status is Status.CONVERGED
    expected = oracles.total_reward(oracles.dense(model), earned * oracles.sojourns(model))
    np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-15)


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("seed", SEEDS)
def test_mdps_agree_with_the_best_of_all_strategies(device, seed, direction):
    model, rewards = small_problem(seed)
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    result = solve(model, rewards, environment, direction)
    assert result.status is Status.CONVERGED
    expected = small_answer(seed, direction)
    np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-15)


def test_the_small_problems_have_infinite_finite_and_zero_values():
    for direction in Direction:
        values = np.concatenate([small_answer(seed, direction) for seed in SEEDS])
        for kind in (np.isinf(values), values == 0.0, np.isfinite(values) & (values > 0.0)):
            assert kind.sum() >= 10


@pytest.mark.parametrize("kind", [models.dtmc, models.ctmc])
def test_a_trap_that_earns_is_infinite_and_one_that_does_not_is_the_end(kind):
    stay = {} if kind is models.ctmc else {1: 1.0}
    rows = [{0: 0.5, 1: 0.5}, stay]
    result = solve(kind(rows), RewardStructure("", np.array([3.0, 0.0])))
    # The mean stay in state 0 is two steps, or a unit of time at rate 1 with half of the jumps
    # leading back: two units.
    np.testing.assert_allclose(result.values, [6.0, 0.0], rtol=1e-8)
    result = solve(kind(rows), RewardStructure("", np.array([0.0, 1e-9])))
    np.testing.assert_array_equal(result.values, [np.inf, np.inf])
    assert result.iterations == 0


def test_a_free_end_component_is_left_where_that_earns_more(device):
    # {0, 1} may go round for nothing; leaving from 1 earns 5, half of it twice.
    model = models.mdp([[{1: 1.0}], [{0: 1.0}, {0: 0.5, 2: 0.5}], [{2: 1.0}]])
    rewards = RewardStructure("", np.zeros(3), np.array([0.0, 0.0, 5.0, 0.0]))
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    most = solve(model, rewards, environment, Direction.MAXIMISE)
    np.testing.assert_allclose(most.values, [10.0, 10.0, 0.0], rtol=1e-8)
    least = solve(model, rewards, environment, Direction.MINIMISE)
    np.testing.assert_array_equal(least.values, [0.0, 0.0, 0.0])
    assert least.iterations == 0


def test_a_walk_that_earns_nothing_takes_no_sweeps(device):
    # A fair walk along 60 states; at its end one may earn 3 and stop.
    size = 60
    steps = [{max(i - 1, 0): 0.5, min(i + 1, size - 1): 0.5} for i in range(size)]
    model = models.mdp([*([step] for step in steps[:-1]), [steps[-1], {size: 1.0}], [{size: 1.0}]])
    earned = np.zeros(model.matrix.num_rows)
    earned[size] = 3.0

    def solve_by(method):
        environment = SolverEnvironment(method=method, epsilon=1e-10, device=device)
        return solve(
            model, RewardStructure("", np.zeros(size + 1), earned), environment, models.MAX
        )

    free, named = solve_by(Method.AUTO), solve_by(Method.VALUE_ITERATION)
    np.testing.assert_array_equal(free.values, [3.0] * size + [0.0])
    assert free.iterations < size**2 < named.iterations


def test_an_end_component_is_infinite_only_if_a_choice_inside_it_earns(device):
    # State 0 may stay for nothing; its other choice earns, but leaves.
    model = models.mdp([[{0: 1.0}, {1: 1.0}], [{1: 1.0}]])
    outside = RewardStructure("", np.zeros(2), np.array([0.0, 7.0, 0.0]))
    inside = RewardStructure("", np.zeros(2), np.array([7.0, 0.0, 0.0]))
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    result = solve(model, outside, environment, Direction.MAXIMISE)
    np.testing.assert_allclose(result.values, [7.0, 0.0], rtol=1e-8)
    result = solve(model, inside, environment, Direction.MAXIMISE)
    np.testing.assert_array_equal(result.values, [np.inf, 0.0])
    result = solve(model, inside, environment, Direction.MINIMISE)
    np.testing.assert_array_equal(result.values, [0.0, 0.0])


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_a_named_value_iteration_sweeps_the_model_as_it_is(seed):
    model, rewards = small_problem(seed)
    infinite = np.isinf(small_answer(seed, models.MAX))
    assert not infinite.all()
    counts = np.diff(model.row_group_offsets)
    earned = np.repeat(rewards.state_rewards, counts) + rewards.choice_rewards
    environment = SolverEnvironment(method=Method.VALUE_ITERATION)
    values, iterations = reference.solve_reachability(
        model,
        ~infinite,
        np.where(infinite, np.inf, 0.0),
        environment,
        rewards=earned,
        direction=models.MAX,
    )
    result = solve(model, rewards, environment, models.MAX)
    assert result.iterations == iterations
    np.testing.assert_allclose(result.values, values, rtol=1e-12)


@pytest.mark.parametrize("method", [Method.JACOBI, Method.JOR, Method.POWER])
@pytest.mark.parametrize("convention", Convention)
@pytest.mark.parametrize("kind", ["DTMC", "CTMC"])
def test_named_methods_sweep_as_the_reference_does(kind, convention, method):
    model, earned = chain_with_traps(kind, 2)
    environment = SolverEnvironment(method=method, convention=convention)
    # PRISM's explicit engine knows the power method alone here.
    swept = Method.POWER if convention is Convention.EXPLICIT else method
    step = oracles.dense(model)
    infinite = np.isinf(oracles.total_reward(step, earned))
    unknown = ~infinite & ~np.any(oracles.recurrent_classes(step), axis=0)
    assert unknown.any()
    values, iterations = reference.solve_reachability(
        model,
        unknown,
        np.where(infinite, np.inf, 0.0),
        SolverEnvironment(method=swept, convention=convention),
        rewards=earned,
    )
    result = solve(model, RewardStructure("", earned), environment)
    assert (result.iterations, result.method) == (iterations, swept)
    np.testing.assert_allclose(result.values, values, rtol=1e-12)


def test_what_does_not_fit_is_refused():
    with pytest.raises(InvalidModelError, match="state 0 has reward -1"):
        solve(models.gamblers_ruin(2), RewardStructure("", np.array([-1.0, 0.0, 0.0])))
    with pytest.raises(ValueError, match="direction"):
        solve(models.end_components(), RewardStructure("", np.zeros(5)))


def test_ends_that_nobody_leaves_are_worth_nothing_for_certain():
    # State 1 earns nothing for ever; from 0 it is entered with 1 in 3 after each step.
    model = models.mdp([[{0: 0.5, 1: 0.25, 2: 0.25}], [{1: 1.0}], [{0: 1.0}, {1: 1.0}]])
    rewards = RewardStructure("", np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
    result = total_rewards(model, rewards, SolverEnvironment(), direction=Direction.MAXIMISE)
    assert 0.0 in result.decided
    assert result.exactly(np.arange(3)).values == [4, 0, 4]
