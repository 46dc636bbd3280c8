"""Component by component: the values of the plain methods, and PRISM's way of counting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.cuda import driver
from engines.errors import ConvergenceError, UnsupportedError
from engines.host import topological as compiled
from engines.host.engine import CpuEngine
from engines.model.environment import DeviceChoice, Method
from engines.model.environment import SolverEnvironment as Environment
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.until import until_probabilities
from engines.solve import system as solving
from engines.solve import topological
from tests.engines import models, oracles
from tests.engines.topological_models import (
    block_chain,
    block_mdp,
    ladder_of_ruins,
    settings_of,
)

CHAINS = {**models.chain_problems(), **models.reward_problems()}
PROBLEMS = {**CHAINS, **models.mdp_problems()}
NAMED = (Method.JACOBI, Method.POWER, Method.JOR)
DIRECTIONS = (models.MIN, models.MAX)


def solve(problem, environment, **more):
    return solve_reachability(
        problem.model, problem.unknown, problem.start, environment, **problem.keywords, **more
    )


def components(problem):
    """The components of the unknown states, each after those that it leads to."""
    model = problem.model
    step = oracles.dense(model) > 0.0
    if model.row_group_offsets is not None:
        step = np.logical_or.reduceat(step, model.row_group_offsets[:-1], axis=0)
    inside = step & problem.unknown[:, None] & problem.unknown[None, :]
    reach = oracles.closure(inside)
    both = reach & reach.T
    found = {tuple(np.flatnonzero(both[s])) for s in np.flatnonzero(problem.unknown)}
    return sorted(found, key=lambda members: (reach[members[0]].sum(), members))


def solved_for_themselves(rows, offset, states):
    """Rows without the entry of their own state, divided by what is left of 1."""
    rows, offset = rows.copy(), offset.copy()
    for row, state in enumerate(states):
        pivot = 1.0 - rows[row, state]
        rows[row, state] = 0.0
        if pivot > 0.0:
            rows[row] /= pivot
            offset[row] /= pivot
    return rows, offset


def plain_loops(problem, environment):
    """Values and count of PRISM's definition: a single state counts 1, others until they rest."""
    model = problem.model
    matrix = oracles.dense(model)
    offset = np.zeros(len(matrix))
    if problem.rewards is not None:
        offset = problem.rewards * (
            oracles.sojourns(model) if model.kind is ModelKind.CTMC else 1.0
        )
    owner = model.states_of_rows()
    x, count = problem.start.copy(), 0
    finite = np.where(np.isfinite(x), x, 1e300)
    best = np.minimum if problem.direction is models.MIN else np.maximum
    own_rows, own_offset = solved_for_themselves(matrix, offset, owner)
    swept = matrix, offset
    if environment.method in (Method.JACOBI, Method.JOR):
        swept = own_rows, own_offset
    omega = environment.omega if environment.method is Method.JOR else 1.0
    for members in components(problem):
        single = len(members) == 1
        rows, right = (own_rows, own_offset) if single else swept
        taken = np.isin(owner, members)
        rows, right = rows[taken], right[taken]
        groups = np.flatnonzero(np.diff(owner[taken], prepend=-1))
        for _ in range(environment.max_iterations):
            count += 1
            worth = rows @ finite + right
            after = best.reduceat(worth, groups)
            before = finite[list(members)]
            after = after if single else (1.0 - omega) * before + omega * after
            finite[list(members)] = after
            change = np.abs(after - before)
            if not environment.absolute:
                with np.errstate(divide="ignore", invalid="ignore"):
                    change = np.where(change > 0.0, change / before, 0.0)
            if single or change.max() < environment.epsilon:
                break
    return np.where(problem.unknown, finite, x), count


@pytest.mark.parametrize(
    ("method", "absolute"), [(Method.JACOBI, False), (Method.POWER, True), (Method.JOR, False)]
)
@pytest.mark.parametrize("name", CHAINS)
def test_named_methods_repeat_plain_loops_over_the_components(name, method, absolute):
    environment = settings_of(method=method, absolute=absolute)
    result = solve(CHAINS[name], environment)
    values, count = plain_loops(CHAINS[name], environment)
    assert result.status is Status.CONVERGED
    assert abs(result.iterations - count) <= (count > 100)
    np.testing.assert_allclose(result.values, values, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(6))
def test_value_iteration_repeats_plain_loops_over_the_components(device, seed, direction):
    problem = models.until(block_mdp(seed), models.mask(block_mdp(seed).num_states, [0]), direction)
    environment = settings_of(method=Method.VALUE_ITERATION, device=device)
    result = solve(problem, environment)
    values, count = plain_loops(problem, environment)
    assert result.iterations == count
    np.testing.assert_allclose(result.values, values, rtol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_automatic_method_gives_the_values_of_the_plain_one(device, name):
    problem = PROBLEMS[name]
    plain = solve(problem, Environment(epsilon=1e-11, device=DeviceChoice.CPU))
    result = solve(problem, settings_of(epsilon=1e-10, device=device))
    assert result.status is Status.CONVERGED
    assert result.error_estimate <= 4e-10
    np.testing.assert_allclose(result.values, plain.values, rtol=1e-9)
    assert f"{len(components(problem))} strongly connected components" in result.note


@given(st.integers(0, 10**9), st.sampled_from([Method.AUTO, *NAMED]))
def test_chains_of_any_seed_agree_with_a_direct_solution(seed, method):
    model = block_chain(seed, 8)
    target = models.mask(model.num_states, [0])
    problem = models.until(model, target)
    if not problem.unknown.any():
        return
    result = solve(problem, settings_of(method=method, epsilon=1e-12, max_iterations=10**6))
    everywhere = np.ones(model.num_states, dtype=bool)
    values = oracles.until(oracles.dense(model), everywhere, target)
    np.testing.assert_allclose(result.values, values, rtol=1e-9)


def test_the_residual_is_that_of_the_whole_system():
    problem = models.until(block_chain(3), models.mask(block_chain(3).num_states, [0]))
    result = solve(problem, settings_of(method=Method.POWER, epsilon=1e-3))
    rows = oracles.dense(problem.model)[problem.unknown]
    residual = np.abs(rows @ result.values - result.values[problem.unknown]).max()
    assert result.residual == pytest.approx(residual, rel=1e-6)
    assert residual > 1e-9


@pytest.mark.parametrize("epsilon", [1e-3, 1e-5, 1e-7])
def test_errors_that_add_up_over_the_components_are_estimated(epsilon):
    ruins = ladder_of_ruins(10, 6)
    problem = models.until(ruins, models.mask(ruins.num_states, [0]))
    exact_values = oracles.until(oracles.dense(ruins), ~problem.unknown | True, problem.start > 0)
    for method in (Method.JACOBI, Method.AUTO):
        result = solve(problem, settings_of(method=method, epsilon=epsilon))
        share = np.abs(result.values - exact_values)[problem.unknown]
        error = (share / exact_values[problem.unknown]).max()
        assert error <= 1.1 * result.error_estimate + 1e-14
        if method is Method.AUTO:
            assert error <= epsilon
        else:
            assert error > epsilon


def test_a_line_of_single_states_is_solved_state_by_state(device):
    size = 100_000
    model = models.line(size)
    problem = models.Problem(
        model, ~models.mask(size, [size - 1]), np.zeros(size), np.ones(size), None
    )
    result = solve(problem, settings_of(device=device))
    np.testing.assert_array_equal(result.values, np.arange(size)[::-1])
    assert result.iterations == size - 1
    assert result.error_estimate == 0.0
    assert result.status is Status.CONVERGED


def test_a_single_state_is_solved_whatever_its_loop():
    model = models.dtmc([{0: 1.0}, {1: 1.0}, {0: 1e-9, 2: 1.0 - 2e-9, 1: 1e-9}])
    problem = models.until(model, models.mask(3, [0]))
    for method in (Method.AUTO, *NAMED):
        result = solve(problem, settings_of(method=method))
        assert result.values[2] == pytest.approx(0.5, rel=1e-6)
        assert result.iterations == 1


def test_a_choice_that_only_loops_earns_for_ever():
    model = models.mdp([[{0: 1.0}], [{1: 1.0}, {0: 0.5, 1: 0.5}]])
    problem = models.reach_reward(model, models.mask(2, [0]), np.array([0, 1.0, 3.0]), models.MIN)
    assert solve(problem, settings_of()).values[1] == 6.0


def test_components_that_contract_slowly_are_solved_directly(device):
    size = 150
    model, target = models.gamblers_ruin(size, 0.49), models.mask(size + 1, [size])
    problem = models.until(model, target)
    result = solve(problem, settings_of(epsilon=1e-10, device=device))
    answer = models.gamblers_ruin_answer(size, 0.49)
    np.testing.assert_allclose(result.values, answer, rtol=1e-8)
    assert result.status is Status.CONVERGED
    assert "elimination" in result.note


def test_slow_decisions_turn_to_policy_iteration(device):
    problem = models.mdp_problems()["MDP rewards max"]
    result = solve(problem, settings_of(epsilon=1e-12, device=device))
    assert result.status is Status.CONVERGED
    if result.cost.engine == "CPU":
        assert "policy iteration" in result.note


def test_a_component_that_is_hardly_left_keeps_its_digits():
    # It is left once in 3e8 visits: sweeps move no more, and 1 - p has seven digits left.
    rare, sure = 1 / (10**9 + 3), 10**9 / (10**9 + 3)
    model = models.mdp(
        [
            [{0: 1 / (10**9 + 1), 1: 10**9 / (10**9 + 1)}],
            [{2: rare, 3: rare, 4: rare, 5: sure}, {0: 1.0}],
            [{0: 1.0}, {2: 1.0}],
            [{0: 1.0}, {0: 1.0}],
            [{4: 1.0}],
            [{0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, {5: 1.0}],
        ]
    )
    rewards = RewardStructure("", np.zeros(6), np.eye(model.matrix.num_rows)[3])
    by_component = settings_of(epsilon=1e-10)
    results = [
        reachability_rewards(model, rewards, models.mask(6, [4]), environment, direction=models.MIN)
        for environment in (by_component, replace(by_component, topological=False))
    ]
    for result in results:
        assert result.status is Status.CONVERGED
        assert result.error_estimate < 1e-12
    np.testing.assert_allclose(results[0].values, results[1].values, rtol=1e-12)
    assert "policy iteration" in results[0].note


def test_the_limit_of_sweeps_holds_for_each_component(device):
    ruins = ladder_of_ruins(5, 6)
    problem = models.until(ruins, models.mask(ruins.num_states, [0]))
    enough = settings_of(method=Method.POWER, max_iterations=250, device=device)
    result = solve(problem, enough)
    assert result.status is Status.CONVERGED
    assert result.iterations > 250
    result = solve(problem, replace(enough, max_iterations=20))
    assert result.status is Status.NOT_CONVERGED
    assert result.iterations == 20
    with pytest.raises(ConvergenceError, match="within 20 iterations"):
        result.raise_unless_converged()


@pytest.mark.parametrize("method", [Method.AUTO, Method.VALUE_ITERATION])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_a_strategy_gives_the_values(seed, direction, method):
    model = block_mdp(seed)
    target, everywhere = models.mask(model.num_states, [0]), np.ones(model.num_states, bool)
    environment = settings_of(method=method, epsilon=1e-12)
    result = until_probabilities(
        model, everywhere, target, environment, direction=direction, want_strategy=True
    )
    rows = np.where(result.strategy >= 0, result.strategy, model.row_group_offsets[:-1])
    induced = oracles.until(oracles.dense(model)[rows], everywhere, target)
    np.testing.assert_allclose(induced, result.values, rtol=1e-9, atol=1e-12)


def test_policies_are_of_all_components_together():
    problem = models.until(block_mdp(1), models.mask(block_mdp(1).num_states, [0]), models.MAX)
    result = solve(problem, settings_of(method=Method.POLICY_ITERATION))
    assert "all strongly connected components together" in result.note


def test_the_gpu_asked_for_and_missing_is_an_error(monkeypatch):
    monkeypatch.setattr(driver, "gpu_refusal", lambda _: "none here")
    for problem in (CHAINS["line rewards"], CHAINS["ruin"]):
        with pytest.raises(UnsupportedError, match="none here"):
            solve(problem, settings_of(device=DeviceChoice.GPU))


def test_the_gpu_asked_for_gets_the_largest_component_however_small(monkeypatch):
    swept = []

    def gpu(_, system, _sweeps=None):
        swept.append(system.num_updates)
        return CpuEngine(), ""

    for module in (topological, solving):
        monkeypatch.setattr(module, "choose_engine", gpu)
    chain = block_chain(7)
    problem = models.until(chain, models.mask(chain.num_states, [0]))
    result = solve(problem, settings_of(method=Method.POWER, device=DeviceChoice.GPU))
    largest = max(map(len, components(problem)))
    assert swept[0] == problem.unknown.sum()
    assert set(swept[1:]) == {largest}
    assert f"of them, {sum(swept[1:])} of {swept[0]} states, on the GPU" in result.note
    values, count = plain_loops(problem, settings_of(method=Method.POWER))
    assert result.iterations == count
    np.testing.assert_allclose(result.values, values, rtol=1e-12)


def test_walks_that_return_between_components_make_the_same_sweeps(monkeypatch):
    ruins = ladder_of_ruins(4, 8)
    problem = models.until(ruins, models.mask(ruins.num_states, [0]))
    environment = settings_of(method=Method.POWER, epsilon=1e-10)
    at_once = solve(problem, environment)
    monkeypatch.setattr(compiled, "ENTRIES_OF_A_CALL", 1_000)
    again = solve(problem, environment)
    np.testing.assert_array_equal(again.values, at_once.values)
    assert again.iterations == at_once.iterations
    everywhere, target = np.ones(ruins.num_states, bool), models.mask(ruins.num_states, [0])
    bounded = replace(environment, bounds=True)
    in_pieces = until_probabilities(ruins, everywhere, target, bounded)
    monkeypatch.undo()
    whole = until_probabilities(ruins, everywhere, target, bounded)
    np.testing.assert_array_equal(in_pieces.bounds, whole.bounds)
    assert in_pieces.iterations == whole.iterations


def test_progress_is_told():
    told = []
    problem = CHAINS["ruin"]
    result = solve(problem, settings_of(), progress=told.append)
    assert told[-1].iterations == result.iterations


@pytest.mark.parametrize("method", [Method.AUTO, Method.POWER])
def test_errors_of_many_components_one_above_the_other_stay_small(method):
    games = 1_000
    ruins = ladder_of_ruins(games, 4)
    size = ruins.num_states
    start = models.mask(size, [0]).astype(float)
    problem = models.Problem(ruins, ~models.mask(size, [0, 1]), start)
    result = solve(problem, settings_of(method=method, epsilon=1e-10))
    # A game won goes on at the third of four states of the game below.
    wanted = 0.6 ** np.arange(games)[:, None] * np.array([0.2, 0.4, 0.6, 0.8])
    errors = np.abs(result.values[2:].reshape(games, 4) / wanted - 1.0)
    assert errors.max() <= result.error_estimate + 1e-12
    if method is Method.AUTO:
        assert errors.max() <= 1e-10
        assert result.status is Status.CONVERGED
    else:
        assert errors.max() > 1e-9


def test_a_choice_that_mostly_stays_is_worth_what_it_earns_until_it_leaves():
    # 1 - p of the loop as it is rounded is off in the eighth digit.
    model = models.mdp(
        [[{0: 0.9999999975, 2: 25e-10}, {1: 4 / 7, 2: 3 / 7}], [{2: 1.0}], [{2: 1.0}]]
    )
    rewards = RewardStructure("", np.zeros(3), np.array([1e6, 1.0, 2.5, 0.0]))
    found = reachability_rewards(
        model,
        rewards,
        models.mask(3, [2]),
        Environment(topological=True, device=DeviceChoice.CPU),
        direction=models.MAX,
    )
    assert found.values[0] == pytest.approx(4e14, rel=1e-14)
