"""Until probabilities and reachability rewards: every engine, method and model of the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.systems.one_sided import Direction
from tests.engines import models, reference

CHAINS = {**models.chain_problems(), **models.reward_problems()}
NAMED = [Method.JACOBI, Method.JOR, Method.POWER]


def solve(problem, environment):
    return solve_reachability(
        problem.model, problem.unknown, problem.start, environment, **problem.keywords
    )


def expect_the_reference(problem, environment):
    result = solve(problem, environment)
    values, iterations = reference.solve_reachability(
        problem.model, problem.unknown, problem.start, environment, **problem.keywords
    )
    assert result.iterations == iterations
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, values, rtol=1e-12, atol=1e-14)
    expect_invariants(problem, environment, result)


def expect_invariants(problem, environment, result):
    known = ~problem.unknown
    np.testing.assert_array_equal(result.values[known], problem.start[known])
    assert (result.values >= 0).all()
    if problem.rewards is None:
        assert (result.values <= 1 + 1e-12).all()
    # The residual is that of the sweep without relaxation.
    method = Method.JACOBI if environment.method is not Method.POWER else Method.POWER
    sweep = reference.reachability_sweep(
        problem.model,
        list(np.flatnonzero(problem.unknown)),
        replace(environment, method=method),
        **problem.keywords,
    )
    finite = np.where(np.isinf(result.values), 0.0, result.values).max()
    residual = reference.largest_residual(sweep, result.values)
    assert result.residual == pytest.approx(residual, abs=1e-14 * (1 + finite))


@pytest.mark.parametrize(
    ("method", "absolute"), [*((method, False) for method in NAMED), (Method.JACOBI, True)]
)
@pytest.mark.parametrize("name", CHAINS)
def test_chains_are_swept_as_the_reference_sweeps_them(device, name, method, absolute):
    environment = SolverEnvironment(method=method, absolute=absolute, device=device)
    expect_the_reference(CHAINS[name], environment)


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("name", models.mdp_problems())
def test_mdps_are_swept_as_the_reference_sweeps_them(device, name, absolute):
    environment = SolverEnvironment(method=Method.VALUE_ITERATION, absolute=absolute, device=device)
    expect_the_reference(models.mdp_problems()[name], environment)


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("name", models.reward_problems())
def test_the_explicit_convention_starts_rewards_from_what_it_is_given(device, name, method):
    environment = SolverEnvironment(
        method=method, convention=Convention.EXPLICIT, device=device, epsilon=1e-8
    )
    expect_the_reference(models.reward_problems()[name], environment)


def test_the_conventions_need_different_numbers_of_sweeps():
    problem = models.reward_problems()["line rewards"]
    counts = {
        solve(problem, SolverEnvironment(method=Method.JACOBI, convention=c)).iterations
        for c in Convention
    }
    assert len(counts) == 2


@pytest.mark.parametrize("omega", [0.3, 0.9, 1.0, 1.1])
def test_jor_relaxes_by_omega(device, omega):
    environment = SolverEnvironment(method=Method.JOR, omega=omega, epsilon=1e-9, device=device)
    expect_the_reference(CHAINS["random DTMC"], environment)


@pytest.mark.parametrize("name", [*CHAINS, *models.mdp_problems()])
def test_the_automatic_method_agrees_with_a_tight_named_one(device, name):
    problem = {**CHAINS, **models.mdp_problems()}[name]
    result = solve(problem, SolverEnvironment(epsilon=1e-9, device=device))
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, models.settled(name), rtol=1e-8)


@pytest.mark.parametrize("direction", Direction)
def test_min_is_at_most_max(device, direction):
    model, target = models.random_mdp(2, loops=0.0), models.mask(50, [1, 2])
    environment = SolverEnvironment(epsilon=1e-9, device=device)
    here = solve(models.until(model, target, direction), environment).values
    other = Direction.MAXIMISE if direction is Direction.MINIMISE else Direction.MINIMISE
    there = solve(models.until(model, target, other), environment).values
    least, most = (here, there) if direction is Direction.MINIMISE else (there, here)
    assert (least <= most + 1e-8).all()
    assert (least < most - 1e-3).any()


def test_a_choice_into_an_infinite_state_is_not_taken_for_a_minimum(device):
    # State 1 never reaches the target 2; state 0 may go there, or pay 5 for the sure way.
    model = models.mdp([[{1: 0.5, 2: 0.5}, {2: 1.0}], [{1: 1.0}], [{2: 1.0}]])
    rewards = np.array([1.0, 5.0, 1.0, 0.0])
    problem = models.reach_reward(model, models.mask(3, [2]), rewards, Direction.MINIMISE)
    assert np.isinf(problem.start[1])
    result = solve(problem, SolverEnvironment(method=Method.VALUE_ITERATION, device=device))
    np.testing.assert_array_equal(result.values, [5.0, np.inf, 0.0])
    assert result.status is Status.CONVERGED
    assert result.residual == 0.0


def test_an_unknown_state_that_must_pay_for_ever_becomes_infinite_not_nan(device):
    # The only choice of state 0 may enter state 1, which is infinite.
    model = models.mdp([[{1: 0.5, 2: 0.5}], [{1: 1.0}], [{2: 1.0}]])
    unknown, start = models.mask(3, [0]), np.array([0.0, np.inf, 0.0])
    environment = SolverEnvironment(method=Method.VALUE_ITERATION, device=device)
    for direction in Direction:
        result = solve_reachability(
            model, unknown, start, environment, rewards=np.ones(3), direction=direction
        )
        np.testing.assert_array_equal(result.values, [np.inf, np.inf, 0.0])
        assert result.status is Status.CONVERGED


@pytest.mark.parametrize("method", NAMED)
def test_the_caller_keeps_its_arrays(device, method):
    problem = models.reward_problems()["DTMC rewards"]
    kept = [
        array.copy()
        for array in (problem.start, problem.rewards, problem.model.matrix.values, problem.unknown)
    ]
    solve(problem, SolverEnvironment(method=method, device=device))
    now = (problem.start, problem.rewards, problem.model.matrix.values, problem.unknown)
    for before, after in zip(kept, now, strict=True):
        np.testing.assert_array_equal(before, after)


def test_integer_starts_and_rewards_give_the_same_values(device):
    problem = models.reward_problems()["line rewards"]
    environment = SolverEnvironment(method=Method.JACOBI, device=device)
    whole = np.full(200, 2, dtype=np.int64)
    expect_the_reference(replace(problem, rewards=whole), environment)
    # Halves must not be cut off when b is put into the start.
    zeros = np.zeros(200, dtype=np.int64)
    expect_the_reference(replace(problem, start=zeros, rewards=np.full(200, 0.5)), environment)
    until = CHAINS["random DTMC"]
    expect_the_reference(replace(until, start=until.start > 0), environment)


def test_wide_column_numbers_give_the_same_values(device):
    problem = CHAINS["random DTMC"]
    matrix = problem.model.matrix
    wide = replace(problem.model, matrix=replace(matrix, columns=matrix.columns.astype(np.int64)))
    environment = SolverEnvironment(method=Method.JACOBI, device=device)
    expect_the_reference(replace(problem, model=wide), environment)


def test_wide_offsets_give_the_same_values(device):
    environment = SolverEnvironment(method=Method.JACOBI, device=device)
    for problem in (CHAINS["random DTMC"], models.mdp_problems()["MDP rewards max"]):
        matrix, groups = problem.model.matrix, problem.model.row_group_offsets
        wide = replace(
            problem.model,
            matrix=replace(matrix, row_offsets=matrix.row_offsets.astype(np.int64)),
            row_group_offsets=None if groups is None else groups.astype(np.int64),
        )
        expect_the_reference(replace(problem, model=wide), environment)


def test_what_does_not_fit_is_refused():
    chain, mdp = CHAINS["random DTMC"], models.mdp_problems()["MDP 2 max"]
    with pytest.raises(UnsupportedError, match="value iteration is for MDPs"):
        solve(chain, SolverEnvironment(method=Method.VALUE_ITERATION))
    with pytest.raises(ValueError, match="no state is unknown"):
        solve(replace(chain, unknown=np.zeros(60, np.bool_)), SolverEnvironment())
    with pytest.raises(ValueError, match="a direction"):
        solve(replace(mdp, direction=None), SolverEnvironment())
