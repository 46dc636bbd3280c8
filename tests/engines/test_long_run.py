"""S, R [ S ] and steady states of whole chains: against linear algebra and PRISM's values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.errors import InvalidModelError, UnsupportedError
from engines.methods import elimination, stretches
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.events import Kind
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.result import SolveResult, Status
from engines.questions import component_averages, long_run, long_run_distribution
from engines.questions.long_run import long_run_probabilities, long_run_rewards
from engines.questions.long_run_distribution import steady_state_distribution
from engines.solve import system as solve
from prism_hooks.claims import UNSTATED, claim_of
from tests.engines import models, oracles, reference

TIGHT = SolverEnvironment(epsilon=1e-10)


def scattered_classes(seed, kind, sizes=(1, 5, 2, 1, 4), transient=12):
    """Recurrent classes of the given sizes, entered from transient states, in mixed order."""
    rng = np.random.default_rng(seed)
    size = sum(sizes) + transient
    names = rng.permutation(size)
    rows = [{} for _ in range(size)]

    def put(state, row):
        scale = 10.0 ** rng.uniform(-1, 1) if kind is ModelKind.CTMC else 1 / sum(row.values())
        rows[names[state]] = {int(names[j]): scale * p for j, p in row.items()}

    first = 0
    for count in sizes:
        for i in range(count):
            row = {first + int(j): float(rng.random()) for j in rng.integers(count, size=2)}
            row[first + (i + 1) % count] = 0.5
            if count > 1 or kind is ModelKind.DTMC:
                put(first + i, row)
        first += count
    for state in range(first, size):
        put(state, {int(j): float(rng.random()) for j in rng.integers(size, size=4)})
    return models.chain(kind, rows)


CHAINS = {
    "several BSCCs": models.several_bsccs(),
    "scattered classes of a DTMC": scattered_classes(3, ModelKind.DTMC),
    "scattered classes of a CTMC": scattered_classes(4, ModelKind.CTMC),
    "large classes of a DTMC": scattered_classes(9, ModelKind.DTMC, (1, 20, 2, 1, 17)),
    "large classes of a CTMC": scattered_classes(10, ModelKind.CTMC, (18, 16, 1, 25)),
    "one recurrent class of a DTMC": models.recurrent(5, 30, ModelKind.DTMC),
    "one recurrent class of a CTMC": models.recurrent(6, 30),
    "periodic DTMC": models.dtmc([{1: 0.5, 2: 0.5}, {3: 1.0}, {3: 1.0}, {0: 1.0}]),
    "periodic CTMC": models.cycle(5, [1.0, 2.0, 4.0, 0.5, 3.0]),
    "random DTMC": models.random_dtmc(7),
    "random CTMC": models.random_ctmc(8, 60, 0.2),
    "ruin": models.gamblers_ruin(20, 0.4),
    "one state": models.dtmc([{0: 1.0}]),
    "one state without exits": models.ctmc([{}]),
    "traps alone": models.ctmc([{}, {1: 2.0}, {}]),
}


@pytest.mark.parametrize("name", CHAINS)
def test_probabilities_agree_with_linear_algebra(device, name):
    model = CHAINS[name]
    rng = np.random.default_rng(1)
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    for share in (0.0, 0.2, 0.6, 1.0):
        states = rng.random(model.num_states) < share
        result = long_run_probabilities(model, states, environment)
        assert result.status is Status.CONVERGED
        expected = oracles.limiting_matrix(model) @ states
        np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("name", CHAINS)
def test_rewards_agree_with_linear_algebra(device, name):
    model = CHAINS[name]
    earned = oracles.sparse_rewards(2, model.num_states)
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    result = long_run_rewards(model, RewardStructure("", earned), environment)
    assert result.status is Status.CONVERGED
    expected = oracles.limiting_matrix(model) @ earned
    np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("name", CHAINS)
def test_the_distribution_agrees_with_linear_algebra(device, name):
    model = CHAINS[name]
    size = model.num_states
    rng = np.random.default_rng(3)
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    spread = rng.random(size)
    for initial in (np.eye(size)[0], np.eye(size)[-1], spread / spread.sum()):
        result = steady_state_distribution(model, initial, environment)
        assert result.status is Status.CONVERGED
        expected = initial @ oracles.limiting_matrix(model)
        np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-14)
        assert result.values.sum() == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("name", CHAINS)
def test_the_three_answers_agree_with_each_other(name):
    model = CHAINS[name]
    size = model.num_states
    states = np.random.default_rng(4).random(size) < 0.3
    inside = long_run_probabilities(model, states, TIGHT).values
    outside = long_run_probabilities(model, ~states, TIGHT).values
    np.testing.assert_allclose(inside + outside, 1.0, rtol=1e-9)
    rewards = RewardStructure("", states.astype(float))
    np.testing.assert_array_equal(long_run_rewards(model, rewards, TIGHT).values, inside)
    initial = np.full(size, 1.0 / size)
    shares = steady_state_distribution(model, initial, TIGHT).values
    assert shares[states].sum() == pytest.approx(initial @ inside, rel=1e-8, abs=1e-14)


def test_a_periodic_chain_has_its_mean_over_a_period(device):
    environment = SolverEnvironment(epsilon=1e-10, device=device)
    model = CHAINS["periodic DTMC"]
    result = steady_state_distribution(model, np.eye(4)[0], environment)
    np.testing.assert_allclose(result.values, [1 / 3, 1 / 6, 1 / 6, 1 / 3], rtol=1e-9)


def test_a_ctmc_is_weighted_by_time():
    model = models.ctmc([{1: 1.0}, {0: 3.0}])
    result = steady_state_distribution(model, np.array([0.0, 1.0]), TIGHT)
    np.testing.assert_allclose(result.values, [0.75, 0.25], rtol=1e-9)


def test_what_the_graph_and_the_rewards_decide_takes_no_sweep():
    model = CHAINS["several BSCCs"]
    classes = models.mask(8, [1, 2, 6])
    for states in (np.ones(8, dtype=bool), np.zeros(8, dtype=bool)):
        result = long_run_probabilities(model, states, TIGHT)
        assert (result.iterations, result.error_estimate) == (0, 0.0)
        np.testing.assert_array_equal(result.values, states.astype(float))
    # Whole classes need no steady state, and state 7 can end in {3, 4, 5} or as state 0 does.
    result = long_run_probabilities(model, classes, TIGHT)
    np.testing.assert_array_equal(result.values[1:7], [1, 1, 0, 0, 0, 1])
    np.testing.assert_allclose(result.values[[0, 7]], [0.5, 0.25], rtol=1e-9)


def test_states_that_must_end_in_an_extreme_class_are_exact():
    model = models.dtmc(
        [{0: 0.3, 1: 0.3, 2: 0.4}, {1: 0.1, 3: 0.9}, {2: 0.7, 4: 0.3}, {3: 1.0}, {4: 1.0}]
    )
    result = long_run_probabilities(model, models.mask(5, [3]), TIGHT)
    np.testing.assert_array_equal(result.values[1:], [1.0, 0.0, 1.0, 0.0])
    assert result.values[0] == pytest.approx(3 / 7, rel=1e-9)


@pytest.mark.usefixtures("never_at_once")
def test_every_class_is_solved_once_and_reaching_them_is_one_solve(monkeypatch):
    model = CHAINS["large classes of a DTMC"]
    solved = []

    def counting(name, *modules):
        original = getattr(modules[0], name)

        def solve(*arguments, **keywords):
            solved.append(name)
            return original(*arguments, **keywords)

        for module in modules:
            monkeypatch.setattr(module, name, solve)

    counting("steady_state_of", component_averages, long_run_distribution)
    counting("solve_reachability", long_run, long_run_distribution)
    earned = np.random.default_rng(5).random(model.num_states)
    result = long_run_rewards(model, RewardStructure("", earned), TIGHT)
    assert solved == ["steady_state_of"] * 3 + ["solve_reachability"]
    assert result.method == "Symmetric Gauss-Seidel and Jacobi"
    solved.clear()
    size = model.num_states
    steady_state_distribution(model, np.full(size, 1.0 / size), TIGHT)
    assert solved == ["solve_reachability"] + ["steady_state_of"] * 3


def slow_chains():
    """Chains that are far from done at a loose epsilon: two slow classes, two slow ways to some."""
    walk = models.birth_death(40, 1.0, 1.1)
    # From the middle of a fair walk into either of two slow classes.
    rows = [{i - 1: 0.5, i + 1: 0.5} for i in range(1, 40)]
    class_rows = reference.rows_of(models.birth_death(30, 0.4, 0.5).matrix)
    lazy = [{**row, i: 1.0 - sum(row.values())} for i, row in enumerate(class_rows)]
    shifted = [[{j + first: p for j, p in row.items()} for row in lazy] for first in (41, 71)]
    both = [{41: 1.0}, *rows, {71: 1.0}, *shifted[0], *shifted[1]]
    return {"a walk": walk, "two ends": models.dtmc(both), "ruin": models.gamblers_ruin(60)}


@pytest.mark.usefixtures("never_at_once")
@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("name", slow_chains())
def test_the_estimated_error_covers_the_true_one(name, absolute, monkeypatch):
    # Sweeps alone: a direct solution has no error to speak of, nor has GMRES.
    monkeypatch.setattr(stretches, "AFTER", ())
    monkeypatch.setattr(solve, "SLOW_AFTER", 10**9)
    monkeypatch.setattr(solve, "SLOW_AFTER_IF_SMALL", 10**9)
    environment = SolverEnvironment(epsilon=1e-4, absolute=absolute)
    model = slow_chains()[name]
    size = model.num_states
    limit = oracles.limiting_matrix(model)

    def expect_covered(result, expected):
        scale = np.where(expected > 1e-12, 1.0 if absolute else expected, 1.0)
        error = (np.abs(result.values - expected) / scale).max()
        assert 1e-9 < error <= 2.0 * result.error_estimate

    earned = 1.0 + np.arange(size) / size
    result = long_run_rewards(model, RewardStructure("", earned), environment)
    expect_covered(result, limit @ earned)
    if name != "a walk" or not absolute:
        initial = np.eye(size)[size // 4]
        result = steady_state_distribution(model, initial, environment)
        expect_covered(result, initial @ limit)


def test_the_only_class_is_entered_for_sure(monkeypatch):
    monkeypatch.delattr(long_run_distribution, "solve_reachability")
    model = models.dtmc([{0: 0.9, 1: 0.1}, {2: 1.0}, {1: 0.5, 2: 0.5}])
    result = steady_state_distribution(model, np.eye(3)[0], TIGHT)
    np.testing.assert_allclose(result.values, [0.0, 1 / 3, 2 / 3], rtol=1e-14)


@pytest.mark.parametrize("convention", Convention)
@pytest.mark.parametrize("method", [Method.JOR, Method.POWER])
@pytest.mark.parametrize("name", ["several BSCCs", "scattered classes of a CTMC", "periodic DTMC"])
def test_named_methods_give_the_same_values(name, method, convention):
    model = CHAINS[name]
    environment = SolverEnvironment(
        method=method, convention=convention, epsilon=1e-11, max_iterations=100_000
    )
    states = np.random.default_rng(8).random(model.num_states) < 0.4
    result = long_run_probabilities(model, states, environment)
    assert result.status is Status.CONVERGED
    expected = oracles.limiting_matrix(model) @ states
    np.testing.assert_allclose(result.values, expected, rtol=1e-7, atol=1e-14)


def test_a_part_that_does_not_converge_makes_the_whole_not_converged():
    environment = SolverEnvironment(method=Method.JACOBI, max_iterations=500)
    model = CHAINS["several BSCCs"]
    result = long_run_probabilities(model, models.mask(8, [1, 4]), environment)
    assert result.status is Status.NOT_CONVERGED
    distribution = steady_state_distribution(model, np.eye(8)[0], environment)
    assert distribution.status is Status.NOT_CONVERGED


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("first", [{1: 1.0}, {1: 1.0, 3: 1.0}], ids=["one", "several"])
def test_a_class_whose_solve_diverges_makes_the_whole_diverge(first):
    rows = [first, {2: 1.0}, {1: 3.0}, {4: 1.0}, {3: 3.0}]
    model = models.ctmc(rows[: 1 + 2 * len(first)])
    environment = SolverEnvironment(method=Method.JOR, omega=1.9, max_iterations=100_000)
    result = long_run_probabilities(model, models.mask(model.num_states, [1]), environment)
    assert result.status is Status.DIVERGED
    start = np.eye(model.num_states)[0]
    assert steady_state_distribution(model, start, environment).status is Status.DIVERGED


@pytest.mark.usefixtures("never_at_once")
def test_combined_results_add_up_and_take_the_worst():
    model = CHAINS["several BSCCs"]
    states = models.mask(8, [1, 4])
    loose = long_run_probabilities(model, states, SolverEnvironment(epsilon=1e-3))
    known = Kind.STATES_SOLVED(states=8, by="the graph")
    exact = replace(SolveResult.exact(np.zeros(8), "graph"), events=(known,))
    both = SolveResult.combined(np.ones(8), [loose, exact, loose], 0.25)
    assert both.iterations == 2 * loose.iterations > 0
    assert both.seconds == pytest.approx(2 * loose.seconds)
    assert (both.residual, both.change) == (loose.residual, loose.change)
    assert (both.error_estimate, both.status) == (0.25, Status.CONVERGED)
    assert both.method == f"{loose.method} and graph"
    assert known in both.events
    assert both.cost == loose.cost
    severities = [status.severity for status in Status]
    assert severities == sorted(severities)
    assert Status.CONVERGED.severity == 0


def pairs(count):
    """Pairs of states, each entered from a state of its own, which has a fifth in the first."""
    rows = []
    for first in range(0, 3 * count, 3):
        rows += [{first: 0.5, first + 1: 0.5}, {first + 2: 1.0}, {first + 1: 0.25, first + 2: 0.75}]
    return models.dtmc(rows), np.arange(3 * count) % 3 == 1


def test_many_small_classes_are_eliminated_together(monkeypatch):
    model, states = pairs(2000)
    for module in (component_averages, long_run_distribution):
        monkeypatch.delattr(module, "steady_state_of")
    result = long_run_probabilities(model, states, TIGHT)
    np.testing.assert_allclose(result.values, 0.2, rtol=1e-12)
    initial = np.full(6000, 1 / 6000)
    distribution = steady_state_distribution(model, initial, TIGHT)
    np.testing.assert_allclose(distribution.values[states], 0.2 / 2000, rtol=1e-9)


def test_a_class_is_a_model_of_its_own_for_a_named_method():
    model, states = pairs(50)
    result = long_run_probabilities(
        model, states, SolverEnvironment(method=Method.JOR, epsilon=1e-12)
    )
    np.testing.assert_allclose(result.values, 0.2, rtol=1e-10)


def test_elimination_keeps_the_digits_of_tiny_probabilities():
    # Birth and death with a ratio of 1e-12 a step: π spans 180 orders of magnitude.
    size = 16
    model = models.birth_death(size, 1e-12, 1.0)
    labels, wanted = np.zeros(size, dtype=np.int32), np.ones(1, dtype=bool)
    values, solved, error = elimination.steady_states(model.matrix, labels, wanted)
    assert solved.all()
    assert error < 1e-12
    np.testing.assert_allclose(values, models.birth_death_answer(size, 1e-12, 1.0), rtol=1e-14)


@pytest.mark.parametrize(
    ("bounds", "method"),
    [
        *((False, method) for method in (Method.AUTO, Method.POWER, Method.GAUSS_SEIDEL)),
        *((bounds, Method.JACOBI) for bounds in (False, True)),
        (True, Method.AUTO),
    ],
)
def test_a_state_that_is_hardly_left_is_left_in_the_right_shares(bounds, method):
    model = models.dtmc([{0: 1.0 - 3e-15, 2: 1e-15, 3: 2e-15}, {2: 1.0}, {2: 1.0}, {3: 1.0}])
    environment = SolverEnvironment(method=method, bounds=bounds)
    result = steady_state_distribution(model, np.array([0.5, 0.5, 0.0, 0.0]), environment)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, [0.0, 0.0, 2 / 3, 1 / 3], rtol=1e-12)


def test_what_does_not_fit_is_refused():
    mdp = models.end_components()
    rewards = RewardStructure("", np.zeros(5))
    with pytest.raises(UnsupportedError, match="long-run probabilities of an MDP"):
        long_run_probabilities(mdp, models.mask(5, [1]), TIGHT)
    with pytest.raises(UnsupportedError, match="long-run rewards of an MDP"):
        long_run_rewards(mdp, rewards, TIGHT)
    with pytest.raises(UnsupportedError, match="steady-state probabilities of an MDP"):
        steady_state_distribution(mdp, np.eye(5)[0], TIGHT)
    chain = models.gamblers_ruin(4)
    with pytest.raises(InvalidModelError, match="state 2 has reward -1"):
        long_run_rewards(chain, RewardStructure("", -np.eye(5)[2]), TIGHT)
    for initial in (np.zeros(5), np.full(5, 0.3), np.ones(4) / 4, np.array([2.0, -1.0, 0, 0, 0])):
        with pytest.raises(ValueError, match="5 probabilities that sum to 1"):
            steady_state_distribution(chain, initial, TIGHT)


@pytest.mark.parametrize(
    ("rate", "method"),
    [(rate, method) for rate in (1e-160, 1e-200) for method in (Method.AUTO, Method.POWER)],
)
def test_an_average_over_what_is_too_small_for_a_double_lies_within_its_error(rate, method):
    chain = models.chain(ModelKind.CTMC, [{1: rate}, {0: 1.0, 2: rate}, {1: 1.0}])
    environment = replace(TIGHT, method=method)
    rewards = RewardStructure("", np.array([0.0, 0.0, 1e300]))
    for result, exact in (
        (long_run_rewards(chain, rewards, environment), 1e300 * rate * rate),
        (long_run_probabilities(chain, np.arange(3) == 2, environment), rate * rate),
    ):
        value = float(result.values[0])
        error = claim_of(result, absolute=False, automatic=method is Method.AUTO)
        if error == UNSTATED:
            assert (method, value) == (Method.POWER, 0.0)
            continue
        assert abs(value - exact) <= error.error * (1.0 if error.absolute else value)
        assert error.error > 1e-5
