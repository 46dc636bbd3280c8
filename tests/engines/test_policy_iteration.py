"""Policy iteration: by sweeps, as PRISM counts; and with direct solutions of chains."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.host.elimination import TooDearError
from engines.methods import direct
from engines.methods.policy_iteration import (
    DirectPolicyIteration,
    ImproperPolicyError,
    PolicyTuning,
)
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.explicit import RewardStructure
from engines.model.result import Status
from engines.questions.reachability import BY_POLICIES, solve_reachability
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.until import until_probabilities
from engines.solve import system as solve_module
from engines.systems.one_sided import SweepSystem
from tests.engines import models, oracles

NAMED = [Method.POLICY_ITERATION, Method.MODIFIED_POLICY_ITERATION]
BOTH = [models.MIN, models.MAX]


def solve(problem, environment, **keywords):
    return solve_reachability(
        problem.model, problem.unknown, problem.start, environment, **problem.keywords, **keywords
    )


def system_of(problem):
    """The system of an MDP whose states are all unknown, or whose known ones are only entered."""
    states = np.flatnonzero(problem.unknown)
    groups = problem.model.row_group_offsets
    rows = np.concatenate([np.arange(groups[s], groups[s + 1]) for s in states])
    counts = np.diff(groups)[states]
    return SweepSystem(
        problem.model.matrix.select_rows(rows),
        problem.start,
        None if problem.rewards is None else problem.rewards[rows],
        states,
        group_offsets=np.concatenate(([0], np.cumsum(counts))),
        direction=problem.direction,
    )


def slow_mdp(size=200, seed=3):
    """A ruin in which each state may move a little further up or down: sweeps hardly contract."""
    rng = np.random.default_rng(seed)
    states = [[{0: 1.0}]]
    for state in range(1, size):
        ups = rng.uniform(0.45, 0.55, 3)
        states.append([{state - 1: 1.0 - up, state + 1: up} for up in ups.tolist()])
    return models.mdp([*states, [{size: 1.0}]])


def ruin_problem(size, direction):
    """The chance of the upper end of `slow_mdp`; only both ends are known."""
    ends = models.mask(size + 1, [0, size])
    start = models.mask(size + 1, [size]).astype(float)
    return models.Problem(slow_mdp(size), ~ends, start, None, direction)


def ruin_answer(model, direction):
    """The larger the chance of a step up, the better, or the worse: a chain, solved densely."""
    groups, matrix = model.row_group_offsets, oracles.dense(model)
    size = model.num_states - 1
    rows = [0]
    for state in range(1, size):
        chances = matrix[groups[state] : groups[state + 1], state + 1]
        pick = np.argmin if direction is models.MIN else np.argmax
        rows.append(groups[state] + pick(chances))
    rows.append(groups[size])
    return oracles.until(matrix[rows], np.ones(size + 1, bool), models.mask(size + 1, [size]))


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("name", models.mdp_problems())
def test_named_methods_agree_with_value_iteration(device, name, method):
    problem = models.mdp_problems()[name]
    tight = SolverEnvironment(method=method, epsilon=1e-12, max_iterations=10**5, device=device)
    result = solve(problem, tight)
    assert result.status is Status.CONVERGED
    if method is Method.MODIFIED_POLICY_ITERATION and problem.keywords.get("rewards") is not None:
        # PRISM has it for probabilities alone.
        method = "Iterative method"
    assert result.method == method
    assert result.residual < 1e-11 * max(1.0, np.max(result.values[problem.unknown]))
    np.testing.assert_allclose(result.values, models.settled(name), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("method", [Method.AUTO, *NAMED])
def test_probabilities_are_those_of_the_best_strategy(method, direction):
    environment = SolverEnvironment(method=method, epsilon=1e-12)
    for seed in range(30):
        model = oracles.small_mdp(seed)
        target = np.random.default_rng(seed).random(6) < 0.3
        everywhere = np.ones(6, dtype=bool)
        result = until_probabilities(model, everywhere, target, environment, direction=direction)
        chains = (step for step, _ in oracles.strategies(model))
        best = oracles.best(direction, (oracles.until(step, everywhere, target) for step in chains))
        np.testing.assert_allclose(result.values, best, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("direction", BOTH)
def test_what_a_choice_lacks_of_probability_1_is_lost(direction):
    # As in the graphs that PRISM builds backwards from a timed automaton's targets.
    for seed in range(60):
        rng = np.random.default_rng(seed)
        states = [
            [dict(enumerate(rng.dirichlet([0.3] * 7).tolist())) for _ in range(3)] for _ in range(6)
        ]
        model = models.mdp([*states, [{6: 1.0}]])
        kept = np.append(rng.choice([0.3, 0.9, 1.0], 18), 1.0)
        model = replace(model, matrix=model.matrix.divide_rows(1.0 / kept))
        target = models.mask(7, [6])
        problem = models.Problem(model, ~target, target.astype(float), None, direction)
        values, groups = problem.start, model.row_group_offsets
        best = np.minimum if direction is models.MIN else np.maximum
        for _ in range(3000):
            values = np.where(
                target, 1.0, best.reduceat(oracles.dense(model) @ values, groups[:-1])
            )
        found, error = DirectPolicyIteration(system_of(problem)).solve(problem.start)
        np.testing.assert_allclose(found, values, rtol=1e-9)
        assert error < 1e-9


def test_a_policy_and_its_sweeps_are_counted_as_prism_counts_them():
    # PRISM's explicit engine, switches -politer and -explicit, on this model as a file: the
    # minimum starts from a policy that reaches the target, the maximum from none.
    model = models.mdp(
        [
            [{1: 0.5, 0: 0.5}, {2: 1.0}],
            [{2: 0.25, 1: 0.75}, {0: 0.5, 2: 0.5}],
            [{3: 0.1, 2: 0.9}, {3: 0.2, 1: 0.8}],
            [{3: 1.0}],
        ]
    )
    rewards = RewardStructure("", np.array([1.0, 2.0, 0.0, 0.0]))
    environment = SolverEnvironment(method=Method.POLICY_ITERATION, convention=Convention.EXPLICIT)
    for direction, (sweeps, policies, value) in PRISM_COUNTS.items():
        result = reachability_rewards(
            model, rewards, models.mask(4, [3]), environment, direction=direction
        )
        assert result.iterations == sweeps
        assert f"{policies} policies" in result.note
        assert result.values[0] == pytest.approx(value, rel=1e-12)


PRISM_COUNTS = {models.MIN: (47, 2, 1.0), models.MAX: (297, 3, 41.99906537899016)}


def test_sweeps_of_modified_policy_iteration_are_limited():
    problem = ruin_problem(100, models.MAX)
    counts = {}
    for method in NAMED:
        environment = SolverEnvironment(
            method=method, epsilon=1e-10, max_iterations=1_000_000, max_iterations_named=True
        )
        result = solve(problem, environment)
        assert result.status is Status.CONVERGED
        counts[method] = int(result.note.split(" policies")[0].split()[-1])
        assert method is Method.POLICY_ITERATION or result.iterations <= 100 * counts[method]
    assert counts[Method.MODIFIED_POLICY_ITERATION] > counts[Method.POLICY_ITERATION]


def test_the_limit_of_sweeps_binds_a_named_policy_iteration():
    problem = ruin_problem(200, models.MAX)
    environment = SolverEnvironment(
        method=Method.POLICY_ITERATION, max_iterations=50, max_iterations_named=True
    )
    assert solve(problem, environment).status is Status.NOT_CONVERGED


@pytest.mark.parametrize("method", [Method.VALUE_ITERATION, *NAMED])
def test_chains_have_no_policies(method):
    problem = models.until(models.gamblers_ruin(5), models.mask(6, [5]))
    with pytest.raises(UnsupportedError, match="is for MDPs; the model is a DTMC"):
        solve(problem, SolverEnvironment(method=method))


@pytest.mark.usefixtures("never_at_once")
@pytest.mark.parametrize("direction", BOTH)
def test_slow_sweeps_turn_to_policies(device, direction):
    problem = ruin_problem(200, direction)
    result = solve(problem, SolverEnvironment(epsilon=1e-12, device=device))
    assert BY_POLICIES in result.note
    assert result.iterations < 2 * solve_module.LOOKED_AT_IF_TINY
    assert result.status is Status.CONVERGED
    assert result.residual < 1e-12
    assert result.error_estimate < 1e-8
    np.testing.assert_allclose(result.values, ruin_answer(problem.model, direction), rtol=1e-9)


@pytest.mark.usefixtures("never_at_once")
@pytest.mark.parametrize("direction", BOTH)
def test_systems_that_are_not_tiny_are_swept_longer_first(device, direction, monkeypatch):
    monkeypatch.setattr(solve_module, "TINY_SYSTEM", 100)
    result = solve(ruin_problem(200, direction), SolverEnvironment(epsilon=1e-12, device=device))
    assert BY_POLICIES in result.note
    least = solve_module.SLOW_AFTER_WITH_CHOICES
    assert least <= result.iterations < 2 * least


@pytest.mark.usefixtures("never_at_once")
@pytest.mark.parametrize("direction", BOTH)
def test_slow_rewards_turn_to_policies(device, direction):
    model = slow_mdp(120)
    rewards = RewardStructure("", np.ones(121))
    target = models.mask(121, [0, 120])
    result = reachability_rewards(
        model,
        rewards,
        target,
        SolverEnvironment(epsilon=1e-11, device=device),
        direction=direction,
        want_strategy=True,
    )
    assert BY_POLICIES in result.note
    chain = oracles.dense(model)[np.where(result.strategy < 0, 0, result.strategy)]
    chain[target] = np.eye(121)[target]
    found = oracles.reachability_reward(chain, np.ones(121), target)
    np.testing.assert_allclose(found, result.values, rtol=1e-9)
    # What a strategy earns, and no choice betters, is optimal.
    groups = model.row_group_offsets
    worth = 1.0 + oracles.dense(model) @ result.values
    reduce = np.minimum if direction is models.MIN else np.maximum
    best = np.where(target, 0.0, reduce.reduceat(worth, groups[:-1]))
    np.testing.assert_allclose(best, result.values, rtol=1e-12)


@pytest.mark.parametrize("name", models.mdp_problems())
def test_policies_from_any_start_reach_the_fixed_point(name):
    problem = models.mdp_problems()[name]
    if not np.isfinite(problem.start).all():
        pytest.skip("states of infinite reward are entered: not what the callers hand over")
    system = system_of(problem)
    for seed in range(5):
        guess = np.where(
            problem.unknown,
            np.random.default_rng(seed).uniform(0.01, 1.0, system.num_states),
            problem.start,
        )
        solver = DirectPolicyIteration(system)
        values, error = solver.solve(guess)
        assert error < 1e-10
        assert solver.is_proper(solver.rows)
        assert (solver.rows >= system.group_offsets[:-1]).all()
        assert (solver.rows < system.group_offsets[1:]).all()
        np.testing.assert_allclose(values, models.settled(name), rtol=1e-9, atol=1e-12)


def test_policies_of_a_maximum_do_not_stay_in_end_components():
    problem = models.until(models.end_components(), models.mask(5, [3]), models.MAX)
    # The end component {0, 1} looks worth 0.9 from inside, and is not.
    guess = np.array([0.9, 0.9, 0.1, 1.0, 0.0])
    values, _ = DirectPolicyIteration(system_of(problem)).solve(guess)
    np.testing.assert_allclose(values, [0.5, 0.5, 0.5, 1.0, 0.0], rtol=1e-12)


def test_zero_reward_cycles_are_no_way_to_a_minimum():
    model, earned = oracles.zero_loops()
    unknown = models.mask(4, [0, 1, 2])
    problem = models.Problem(model, unknown, np.zeros(4), earned, models.MIN)
    values, _ = DirectPolicyIteration(system_of(problem)).solve(np.zeros(4))
    # From 0: half of the steps at 2 reach the target; 2 steps for free into 0.
    np.testing.assert_allclose(values, [4.0, 4.0, 4.0, 0.0], rtol=1e-12)


def test_a_maximum_that_earns_for_ever_is_refused():
    model = models.mdp([[{0: 1.0}, {1: 1.0}], [{1: 1.0}]])
    problem = models.Problem(
        model, models.mask(2, [0]), np.zeros(2), np.array([1.0, 0.0, 0.0]), models.MAX
    )
    with pytest.raises(ImproperPolicyError):
        DirectPolicyIteration(system_of(problem)).solve(np.array([1e6, 0.0]))


def test_a_minimum_with_end_components_is_left_to_the_sweeps(monkeypatch):
    # Without the precomputation of probability 0, {0} may stay unknown; its minimum is 0.
    monkeypatch.setattr(solve_module, "SLOW_AFTER_WITH_CHOICES", 0)
    model = models.mdp([[{0: 1.0}, {1: 1.0}], [{1: 1.0}], [{0: 0.5, 2: 0.5 - 1e-4, 1: 1e-4}]])
    problem = models.Problem(model, models.mask(3, [0, 2]), np.array([0.0, 1.0, 0.0]), None)
    result = solve_reachability(
        model,
        problem.unknown,
        problem.start,
        SolverEnvironment(epsilon=1e-12),
        direction=models.MIN,
        want_strategy=True,
    )
    np.testing.assert_allclose(result.values, [0.0, 1.0, 1e-4 / (0.5 + 1e-4)], rtol=1e-9)
    assert result.strategy[0] == 0


@pytest.mark.usefixtures("never_at_once")
def test_when_policies_fail_the_sweeps_go_on(device, monkeypatch):
    def fail(_system, **_options):
        raise TooDearError("the factors would fill up")

    monkeypatch.setattr(direct, "solved_chain", fail)
    problem = ruin_problem(60, models.MAX)
    result = solve(problem, SolverEnvironment(epsilon=1e-10, device=device), want_strategy=True)
    assert result.status is Status.CONVERGED
    assert f"{BY_POLICIES} failed: the factors would fill up" in result.note
    np.testing.assert_allclose(result.values, ruin_answer(problem.model, models.MAX), rtol=1e-8)
    assert result.strategy is not None


def test_policies_that_do_not_settle_are_given_up():
    problem = ruin_problem(200, models.MAX)
    with pytest.raises(RuntimeError, match="have not settled"):
        DirectPolicyIteration(system_of(problem), tuning=PolicyTuning(most_policies=1)).solve(
            np.linspace(1.0, 0.0, 201)
        )


@pytest.mark.usefixtures("never_at_once")
def test_a_system_that_is_too_large_to_be_eliminated_is_swept(monkeypatch):
    monkeypatch.setattr(direct, "LARGEST_SYSTEM", 10)
    problem = ruin_problem(60, models.MAX)
    result = solve(problem, SolverEnvironment(epsilon=1e-10))
    assert "elimination" not in result.note
    assert result.status is Status.CONVERGED


def random_successors(size, leak=1e-5):
    """Each state moves to any others, and hardly ever on to the end: slow, and full of fill-in."""
    rng = np.random.default_rng(1)
    states = [[{size: 1.0}]]
    for _ in range(1, size):
        picks = rng.choice(size - 1, 3, replace=False) + 1
        row = dict.fromkeys(picks.tolist(), (1.0 - leak) / 3.0)
        states.append([{**row, 0: leak / 2.0, size: leak / 2.0}])
    states[0] = [{0: 1.0}]
    model = models.mdp([*states, [{size: 1.0}]])
    ends = models.mask(size + 1, [0, size])
    start = models.mask(size + 1, [size]).astype(float)
    return models.Problem(model, ~ends, start, None, models.MAX)


def test_a_chain_whose_factors_would_fill_up_is_not_factorised():
    problem = random_successors(5_000)
    guess = np.full(5_001, 0.5)
    with pytest.raises(TooDearError, match="would fill up"):
        DirectPolicyIteration(system_of(problem), 1e8).solve(guess)
    # As many states on a line are solved.
    line = ruin_problem(5_000, models.MAX)
    values, _ = DirectPolicyIteration(system_of(line), 1e8).solve(np.linspace(0.0, 1.0, 5_001))
    assert (np.diff(values) > -1e-12).all()


def two_choices(first, second, offset=None):
    """A state with two choices, beside one that stays and one whose value is 1."""
    rows = models.csr([first, second, {1: 1.0}], 3)
    return SweepSystem(
        rows,
        np.array([0.0, 0.0, 1.0]),
        None if offset is None else np.array(offset),
        np.array([0, 1]),
        group_offsets=np.array([0, 2, 3]),
        direction=models.MAX,
    )


def test_a_policy_may_end_where_nothing_is_earned():
    system = two_choices({0: 1.0}, {1: 1.0}, [0.0, 3.0, 0.0])
    solver = DirectPolicyIteration(system)
    solver._may_widen = False
    found = np.array([3.0, 0.0, 1.0])
    assert solver.ends(found).tolist() == [False, True, True]
    assert solver.solve(found)[0].tolist() == [3.0, 0.0, 1.0]
    # The choice to wait has the same value, and is not taken first.
    assert solver.policies == 1


@pytest.mark.parametrize(("more", "taken"), [(2e-15, 1), (0.5e-15, None)])
def test_a_choice_is_better_where_it_gains_more_than_rounding_may(more, taken):
    solver = DirectPolicyIteration(two_choices({1: 0.5, 2: 0.5}, {2: 1.0}))
    policy = SimpleNamespace(rows=np.array([0, 2]))
    better, open_gains = solver._improved(policy, np.array([0, more, 0]), np.array([0, 1e-15, 0]))
    if taken is None:
        assert better is None
        assert open_gains.tolist() == [more + 1e-15, 0.0]
    else:
        assert better.tolist() == [taken, 2]


def test_what_is_left_to_gain_is_part_of_the_error(monkeypatch):
    solver = DirectPolicyIteration(two_choices({2: 1.0}, {1: 1.0}))
    solver._may_widen = False
    monkeypatch.setattr(solver, "_improved", lambda *_: (None, np.array([0.1, 0.0])))
    monkeypatch.setattr(solver, "_still_to_gain", lambda *_: 0.25)
    values, error = solver.solve(np.array([1.0, 0.0, 1.0]))
    assert values[0] == 1.0
    assert 0.25 <= error < 0.26
