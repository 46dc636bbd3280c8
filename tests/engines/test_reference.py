"""The oracle itself, against closed forms, dense linear algebra and every memoryless strategy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.systems.one_sided import Direction
from tests.engines import models, reference

TIGHT = SolverEnvironment(method=Method.JACOBI, epsilon=1e-13, max_iterations=100_000)


def test_ruin_has_its_closed_form():
    problem = models.until(models.gamblers_ruin(12, 0.4), models.mask(13, [12]))
    values, _ = reference.solve_reachability(problem.model, problem.unknown, problem.start, TIGHT)
    np.testing.assert_allclose(values, models.gamblers_ruin_answer(12, 0.4), rtol=1e-10)


@pytest.mark.parametrize("method", [Method.JACOBI, Method.JOR, Method.POWER])
@pytest.mark.parametrize("name", models.reward_problems())
def test_rewards_solve_the_linear_system(name, method):
    problem = models.reward_problems()[name]
    environment = SolverEnvironment(method=method, epsilon=1e-13, max_iterations=100_000)
    values, _ = reference.solve_reachability(
        problem.model, problem.unknown, problem.start, environment, **problem.keywords
    )
    np.testing.assert_allclose(values, dense_solution(problem), rtol=1e-9)


def dense_solution(problem):
    """Values of all states, by numpy.linalg."""
    model, unknown = problem.model, problem.unknown
    size = model.num_states
    dense = np.zeros((size, size))
    np.add.at(dense, (model.matrix.row_of_entry(), model.matrix.columns), model.matrix.values)
    rewards = np.zeros(size) if problem.rewards is None else problem.rewards
    if model.kind is ModelKind.CTMC:
        exits = np.where(dense.sum(axis=1) > 0, dense.sum(axis=1), 1.0)
        dense, rewards = dense / exits[:, None], rewards / exits
    known = np.where(unknown | np.isinf(problem.start), 0.0, problem.start)
    inner = dense[np.ix_(unknown, unknown)]
    right = rewards[unknown] + dense[unknown] @ known
    values = problem.start.astype(float).copy()
    values[unknown] = np.linalg.solve(np.eye(len(inner)) - inner, right)
    return values


@pytest.mark.parametrize("method", [Method.JOR, Method.POWER])
@pytest.mark.parametrize("name", models.steady_state_problems())
def test_steady_states_balance(name, method):
    model, bscc = models.steady_state_problems()[name]
    environment = SolverEnvironment(method=method, epsilon=1e-13, max_iterations=100_000)
    pi, _ = reference.solve_steady_state(model, bscc, environment)
    dense = np.zeros((model.num_states, model.num_states))
    np.add.at(dense, (model.matrix.row_of_entry(), model.matrix.columns), model.matrix.values)
    flow = pi @ dense - pi * dense.sum(axis=1)
    assert np.abs(flow).max() < 1e-9
    assert pi.sum() == pytest.approx(1.0, abs=1e-14)
    assert not pi[~bscc].any()


def test_birth_and_death_has_its_closed_form():
    model, bscc = models.steady_state_problems()["birth and death"]
    environment = SolverEnvironment(method=Method.JOR, epsilon=1e-13, max_iterations=100_000)
    pi, _ = reference.solve_steady_state(model, bscc, environment)
    np.testing.assert_allclose(pi, models.birth_death_answer(12), rtol=1e-9)


@pytest.mark.parametrize(
    ("before", "after", "absolute", "change"),
    [
        ([1.0, 2.0], [1.5, 2.0], True, 0.5),
        ([4.0, 1.0], [5.0, 1.5], False, 0.5),
        ([0.0], [0.0], False, 0.0),
        ([0.0], [1e-300], False, np.inf),
        ([0.0], [1e-300], True, 1e-300),
        ([np.inf], [np.inf], False, 0.0),
        ([-2.0], [-1.0], False, 0.5),
        ([], [], False, 0.0),
    ],
)
def test_the_change_of_a_sweep_is_prisms(before, after, absolute, change):
    assert reference.change_of_sweep(before, after, absolute=absolute) == change


def strategies(model):
    """The chain that each memoryless strategy of an MDP makes."""
    rows = reference.rows_of(model.matrix)
    for picks in itertools.product(*reference.choices_of(model)):
        yield models.dtmc([rows[pick] for pick in picks])


def small_mdp(seed):
    rng = np.random.default_rng(seed)
    states = []
    for state in range(6):
        choices = [models.distribution(rng, 6, 2) for _ in range(rng.integers(1, 4))]
        states.append([{state: 1.0}] if rng.random() < 0.2 else choices)
    return models.mdp(states)


@pytest.mark.parametrize("seed", range(12))
def test_qualitative_answers_quantify_over_all_strategies(seed):
    model = small_mdp(seed)
    rng = np.random.default_rng(seed)
    remain, target = rng.random(6) < 0.8, rng.random(6) < 0.3
    zero = [reference.prob0(m, remain, target) for m in strategies(model)]
    one = [reference.prob1(m, remain, target) for m in strategies(model)]
    assert (reference.prob0a(model, remain, target) == np.all(zero, axis=0)).all()
    assert (reference.prob0e(model, remain, target) == np.any(zero, axis=0)).all()
    assert (reference.prob1a(model, remain, target) == np.all(one, axis=0)).all()
    assert (reference.prob1e(model, remain, target) == np.any(one, axis=0)).all()


@pytest.mark.parametrize("seed", range(6))
def test_qualitative_answers_of_chains_are_the_extremes_of_the_quantitative_ones(seed):
    model = models.random_dtmc(seed, 12, 0.15)
    rng = np.random.default_rng(seed)
    remain, target = rng.random(12) < 0.8, rng.random(12) < 0.2
    never = reference.prob0(model, remain, target)
    surely = reference.prob1(model, remain, target)
    unknown = remain & ~target
    values, _ = reference.solve_reachability(model, unknown, target.astype(float), TIGHT)
    assert (never == (values < 1e-9)).all()
    assert (surely == (values > 1 - 1e-9)).all()


def test_bsccs_are_closed_and_connected():
    assert reference.bsccs(models.several_bsccs().matrix) == [[1, 2], [3, 4, 5], [6]]
    assert reference.bsccs(models.cycle(5).matrix) == [[0, 1, 2, 3, 4]]
    assert reference.bsccs(models.gamblers_ruin(4).matrix) == [[0], [4]]


@pytest.mark.parametrize("seed", range(5))
def test_some_bscc_is_reached_from_everywhere(seed):
    model = models.random_dtmc(seed, 25, 0.1)
    recurrent = models.mask(25, itertools.chain(*reference.bsccs(model.matrix)))
    everywhere = np.ones(25, dtype=np.bool_)
    assert reference.prob1(model, everywhere, recurrent).all()


def test_a_minimum_is_at_most_a_maximum_over_every_strategy():
    model, target = small_mdp(3), models.mask(6, [0])
    environment = SolverEnvironment(method=Method.POWER, epsilon=1e-13, max_iterations=10_000)
    unknown, start = ~target, target.astype(float)
    least, most = (
        reference.solve_reachability(model, unknown, start, environment, direction=direction)[0]
        for direction in Direction
    )
    every = [
        reference.solve_reachability(m, unknown, start, environment)[0] for m in strategies(model)
    ]
    np.testing.assert_allclose(least, np.min(every, axis=0), atol=1e-9)
    np.testing.assert_allclose(most, np.max(every, axis=0), atol=1e-9)


def test_the_reference_has_no_automatic_method():
    model, bscc = models.steady_state_problems()["birth and death"]
    with pytest.raises(ValueError, match="no steady-state method Automatic"):
        reference.solve_steady_state(model, bscc, SolverEnvironment())
    unknown = models.mask(12, [1])
    with pytest.raises(ValueError, match="no method Automatic"):
        reference.solve_reachability(model, unknown, np.zeros(12), SolverEnvironment())


def test_duplicate_entries_add_up_and_zeros_are_no_transitions():
    matrix = models.csr([{0: 0.5, 1: 0.5}, {1: 1.0}])
    matrix.columns[:2] = 1
    assert reference.rows_of(matrix)[0] == {1: 1.0}
    matrix.values[0] = 0.0
    assert reference.rows_of(matrix)[0] == {1: 0.5}
    assert isinstance(ExplicitModel(ModelKind.DTMC, matrix), ExplicitModel)
