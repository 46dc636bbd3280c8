"""Until probabilities of whole models: against linear algebra, strategies and PRISM's values."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.result import Status
from engines.questions.until import until_probabilities
from engines.systems.one_sided import Direction
from tests.engines import models, oracles, reference

SEEDS = range(25)
CHAINS = {
    "DTMC": models.random_dtmc(31),
    "DTMC with many traps": models.random_dtmc(32, 80, 0.3),
    "DTMC without traps": models.random_dtmc(33, 40, 0.0),
    "CTMC": models.random_ctmc(34),
    "CTMC with many traps": models.random_ctmc(35, 70, 0.3),
    "several BSCCs": models.several_bsccs(),
    "dense row": models.dense_row(),
    "one state": models.dtmc([{0: 1.0}]),
    "one state without exits": models.ctmc([{}]),
}


@functools.cache
def small_problem(seed):
    """A small MDP, where a path may pass, and what it must reach."""
    rng = np.random.default_rng(1000 + seed)
    return oracles.small_mdp(seed), rng.random(6) < 0.85, rng.random(6) < 0.3


@functools.cache
def small_answer(seed, direction):
    model, remain, target = small_problem(seed)
    values = (oracles.until(step, remain, target) for step, _ in oracles.strategies(model))
    return oracles.best(direction, values)


@pytest.mark.parametrize("name", CHAINS)
def test_chains_agree_with_linear_algebra(device, name):
    model = CHAINS[name]
    rng = np.random.default_rng(7)
    for _ in range(4):
        remain = rng.random(model.num_states) < 0.9
        target = rng.random(model.num_states) < 0.1
        result = until_probabilities(
            model, remain, target, SolverEnvironment(epsilon=1e-10, device=device)
        )
        assert result.status is Status.CONVERGED
        expected = oracles.until(oracles.dense(model), remain, target)
        np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-15)


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("seed", SEEDS)
def test_mdps_agree_with_the_best_of_all_strategies(device, seed, direction):
    model, remain, target = small_problem(seed)
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    result = until_probabilities(model, remain, target, environment, direction=direction)
    assert result.status is Status.CONVERGED
    expected = small_answer(seed, direction)
    np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-15)
    # What the graph knows is known without rounding.
    for sure in (0.0, 1.0):
        close = np.abs(expected - sure) < 1e-12
        np.testing.assert_array_equal(result.values[close], sure)


@pytest.mark.usefixtures("never_at_once")
@pytest.mark.parametrize("direction", Direction)
def test_the_estimated_error_covers_the_true_one(direction):
    environment = SolverEnvironment(epsilon=1e-4)
    swept = 0
    for seed in SEEDS:
        model, remain, target = small_problem(seed)
        result = until_probabilities(model, remain, target, environment, direction=direction)
        expected = small_answer(seed, direction)
        error = np.abs(result.values - expected) / np.where(expected > 0.0, expected, 1.0)
        assert error.max() <= max(2.0 * result.error_estimate, 1e-12)
        swept += result.iterations > 0
    assert swept >= 5


@pytest.mark.parametrize("seed", SEEDS)
def test_min_is_at_most_max_and_both_are_probabilities(seed):
    model = models.random_mdp(seed, loops=0.3)
    rng = np.random.default_rng(seed)
    remain, target = rng.random(50) < 0.9, rng.random(50) < 0.1
    least, most = (
        until_probabilities(
            model, remain, target, SolverEnvironment(epsilon=1e-10), direction=direction
        ).values
        for direction in Direction
    )
    assert (least >= 0.0).all()
    assert (least <= most + 1e-9).all()
    assert (most <= 1.0 + 1e-12).all()


def test_answers_of_the_graph_alone_take_no_sweep():
    everywhere = np.ones(8, dtype=np.bool_)
    model = models.several_bsccs()
    for target in (everywhere, ~everywhere, models.mask(8, [1, 3, 6])):
        result = until_probabilities(model, everywhere, target, SolverEnvironment())
        assert (result.iterations, result.residual, result.error_estimate) == (0, 0.0, 0.0)
        assert result.status is Status.CONVERGED
        assert result.method == Method.AUTO
        assert set(result.values) <= {0.0, 1.0}


def test_a_walk_inside_an_end_component_takes_no_sweeps(device):
    # A fair walk along 60 states, for ever if wished; the way out, half to the target and half to
    # a trap, is at its end. The walk itself takes some 60² sweeps to tell its start of it.
    size = 60
    steps = [{max(i - 1, 0): 0.5, min(i + 1, size - 1): 0.5} for i in range(size)]
    states = [[step] for step in steps]
    states[-1].append({size: 0.5, size + 1: 0.5})
    model = models.mdp([*states, [{size: 1.0}], [{size + 1: 1.0}]])
    everywhere, target = np.ones(size + 2, dtype=np.bool_), models.mask(size + 2, [size])

    def solve(method):
        environment = SolverEnvironment(method=method, epsilon=1e-10, device=device)
        return until_probabilities(model, everywhere, target, environment, direction=models.MAX)

    free, named = solve(Method.AUTO), solve(Method.VALUE_ITERATION)
    np.testing.assert_array_equal(free.values[:size], 0.5)
    assert free.iterations < size**2 < named.iterations
    assert free.residual == 0.0


@pytest.mark.parametrize("convention", Convention)
@pytest.mark.parametrize("method", [Method.JACOBI, Method.JOR, Method.POWER])
@pytest.mark.parametrize("name", ["DTMC", "CTMC", "several BSCCs"])
def test_named_methods_sweep_as_the_reference_does(name, method, convention):
    model = CHAINS[name]
    target = models.mask(model.num_states, [1, 6])
    environment = SolverEnvironment(method=method, convention=convention)
    problem = models.until(model, target)
    values, iterations = reference.solve_reachability(
        model, problem.unknown, problem.start, environment
    )
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    result = until_probabilities(model, everywhere, target, environment)
    assert result.iterations == iterations
    np.testing.assert_allclose(result.values, values, rtol=1e-12)


@pytest.mark.parametrize("direction", Direction)
def test_a_named_value_iteration_sweeps_as_the_reference_does(direction):
    model, target = models.random_mdp(5, loops=0.4), models.mask(50, [1, 2])
    problem = models.until(model, target, direction)
    environment = SolverEnvironment(method=Method.VALUE_ITERATION)
    values, iterations = reference.solve_reachability(
        model, problem.unknown, problem.start, environment, direction=direction
    )
    everywhere = np.ones(50, dtype=np.bool_)
    result = until_probabilities(model, everywhere, target, environment, direction=direction)
    assert result.iterations == iterations
    np.testing.assert_allclose(result.values, values, rtol=1e-12)


def test_what_does_not_fit_is_refused():
    everywhere = np.ones(5, dtype=np.bool_)
    target = models.mask(5, [3])
    with pytest.raises(ValueError, match="direction"):
        until_probabilities(models.end_components(), everywhere, target, SolverEnvironment())
    with pytest.raises(UnsupportedError, match="value iteration is for MDPs"):
        until_probabilities(
            models.gamblers_ruin(4),
            everywhere,
            models.mask(5, [4]),
            SolverEnvironment(method=Method.VALUE_ITERATION),
        )
