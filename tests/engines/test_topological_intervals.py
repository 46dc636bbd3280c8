"""Component by component: bounds that hold, and PRISM's counts of both methods."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.files.writer import write_model
from engines.errors import ConvergenceError
from engines.model.environment import IntervalOptions, Method
from engines.model.explicit import RewardStructure
from engines.model.result import Status
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.until import until_probabilities
from engines.solve import topological_intervals
from tests.engines import exact, models, oracles
from tests.engines.topological_models import (
    block_chain,
    block_mdp,
    exact_blocks,
    ladder_of_ruins,
    settings_of,
)

bounded = partial(settings_of, bounds=True)
DIRECTIONS = (models.MIN, models.MAX)
INTERVAL_METHODS = (Method.AUTO, Method.INTERVAL, Method.POWER, Method.JACOBI)


@pytest.mark.parametrize("method", INTERVAL_METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_chains_hold(device, seed, method):
    rows = [choices[0] for choices in exact_blocks(seed)]
    size = len(rows)
    target = models.mask(size, [0])
    environment = bounded(method=method, device=device)
    result = until_probabilities(exact.dtmc(rows), np.ones(size, bool), target, environment)
    exact.assert_encloses(result, exact.until(rows, set(range(size)), {0}), 1.001e-6)
    assert result.status is Status.CONVERGED
    payments = exact.random_payments(seed, size)
    rewards = RewardStructure("", exact.array(payments))
    ends = models.mask(size, [0, 1])
    result = reachability_rewards(exact.dtmc(rows), rewards, ends, environment)
    exact.assert_encloses(result, exact.reward(rows, payments, {0, 1}), 1.001e-6)
    assert "strongly connected components" in result.note or result.iterations == 0


@pytest.mark.parametrize("method", [Method.AUTO, Method.VALUE_ITERATION])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_mdps_hold(seed, direction, method):
    choices = exact.random_choices(seed)
    size = len(choices)
    model, target = exact.mdp(choices), models.mask(size, [0])
    environment = bounded(method=method, max_iterations=10**6)
    result = until_probabilities(
        model, np.ones(size, bool), target, environment, direction=direction
    )
    values = exact.best_until(choices, set(range(size)), {0}, direction)
    exact.assert_encloses(result, values, 1.001e-6)
    payments = exact.random_payments(seed, model.matrix.num_rows)
    rewards = RewardStructure("", np.zeros(size), exact.array(payments))
    result = reachability_rewards(model, rewards, target, environment, direction=direction)
    exact.assert_encloses(result, exact.best_reward(choices, payments, {0}, direction), 1.001e-6)


@given(
    st.integers(0, 10**9),
    st.sampled_from(INTERVAL_METHODS),
    st.sampled_from([1e-2, 1e-6, 1e-10]),
    st.booleans(),
)
def test_bounds_of_any_seed_hold(seed, method, epsilon, absolute):
    rows = exact.random_chain(seed)
    size = len(rows)
    environment = bounded(method=method, epsilon=epsilon, absolute=absolute, max_iterations=10**6)
    target = models.mask(size, [0, 3])
    result = until_probabilities(exact.dtmc(rows), np.ones(size, bool), target, environment)
    values = exact.until(rows, set(range(size)), {0, 3})
    exact.assert_encloses(result, values, 1.001 * epsilon, absolute)


@given(st.integers(0, 10**9), st.sampled_from(DIRECTIONS), st.sampled_from([1e-2, 1e-6, 1e-10]))
def test_bounds_of_mdps_of_any_seed_hold(seed, direction, epsilon):
    choices = exact.random_choices(seed, 4)
    model, target = exact.mdp(choices), models.mask(4, [0])
    environment = bounded(epsilon=epsilon)
    result = until_probabilities(model, np.ones(4, bool), target, environment, direction=direction)
    values = exact.best_until(choices, set(range(4)), {0}, direction)
    exact.assert_encloses(result, values, epsilon)
    payments = exact.random_payments(seed, model.matrix.num_rows)
    rewards = RewardStructure("", np.zeros(4), exact.array(payments))
    result = reachability_rewards(model, rewards, target, environment, direction=direction)
    exact.assert_encloses(result, exact.best_reward(choices, payments, {0}, direction), epsilon)


def test_bounds_over_many_components_come_as_close_as_asked(device):
    ruins = ladder_of_ruins(12, 5)
    everywhere, target = np.ones(ruins.num_states, bool), models.mask(ruins.num_states, [0])
    for epsilon in (1e-3, 1e-6, 1e-10):
        result = until_probabilities(
            ruins, everywhere, target, bounded(epsilon=epsilon, device=device)
        )
        lower, upper = result.bounds
        values = oracles.until(oracles.dense(ruins), everywhere, target)
        assert result.status is Status.CONVERGED
        assert (lower <= values + 1e-15).all()
        assert (values <= upper + 1e-15).all()
        assert ((upper - lower) <= epsilon * lower).all()
        assert result.error_estimate <= epsilon


def test_slow_components_get_verified_bounds_from_the_bounds_below_them(device, monkeypatch):
    monkeypatch.setattr(topological_intervals, "SLOW_AFTER", 1_000)
    size = 150
    rows = [{0: 1.0}, {1: 1.0}, {0: 0.3, 3: 0.5, 1: 0.2}, {2: 0.5, 1: 0.5}]
    first = len(rows)
    for at in range(size):
        down = 1 if at == 0 else first + at - 1
        rows.append({down: 0.51, 2 if at == size - 1 else first + at + 1: 0.49})
    model = models.dtmc(rows)
    everywhere, target = np.ones(len(rows), bool), models.mask(len(rows), [0])
    result = until_probabilities(model, everywhere, target, bounded(device=device, epsilon=1e-8))
    rational = [{s: Fraction(p) for s, p in row.items()} for row in rows]
    for row in rational[first:]:
        row.update({s: Fraction(51 if p > 0.5 else 49, 100) for s, p in row.items()})
    rational[2] = {0: Fraction(3, 10), 3: Fraction(1, 2), 1: Fraction(1, 5)}
    # State 2 is worth y = 0.3 + 0.25 y.
    y = Fraction(2, 5)
    ratio = Fraction(51, 49)
    lower, upper = result.bounds
    assert result.status is Status.CONVERGED
    assert "proven bounds" in result.note
    for at in range(size):
        value = y * (1 - ratio ** (at + 1)) / (1 - ratio ** (size + 1))
        assert Fraction(float(lower[first + at])) <= value <= Fraction(float(upper[first + at]))


def test_bounds_given_by_hand_that_are_wrong_are_found(device):
    model = ladder_of_ruins(3, 4)
    rewards = RewardStructure("", np.ones(model.num_states))
    target = models.mask(model.num_states, [0, 1])
    for options in (IntervalOptions(upper=2.0), IntervalOptions(lower=500.0, upper=501.0)):
        with pytest.raises(ConvergenceError):
            reachability_rewards(model, rewards, target, bounded(device=device, interval=options))


def test_the_limit_of_sweeps_leaves_bounds_that_hold(device):
    ruins = ladder_of_ruins(4, 8)
    everywhere, target = np.ones(ruins.num_states, bool), models.mask(ruins.num_states, [0])
    environment = bounded(method=Method.POWER, max_iterations=30, device=device)
    result = until_probabilities(ruins, everywhere, target, environment)
    values = oracles.until(oracles.dense(ruins), everywhere, target)
    assert result.status is Status.NOT_CONVERGED
    assert (result.bounds[0] <= values).all()
    assert (values <= result.bounds[1]).all()


def test_guesses_are_of_all_components_together():
    ruins = ladder_of_ruins(2, 4)
    everywhere, target = np.ones(ruins.num_states, bool), models.mask(ruins.num_states, [0])
    environment = bounded(method=Method.OPTIMISTIC)
    result = until_probabilities(ruins, everywhere, target, environment)
    assert "all strongly connected components together" in result.note


COUNT = re.compile(r"with (\d+) non-singleton SCCs\) took (\d+) iterations")
EPSILON = 1e-9


def prism_counts(prism, tmp_path, model, text, *switches):
    """The values of all states and the iterations, by PRISM's explicit engine."""
    labels = {
        "init": models.mask(model.num_states, [0]),
        "deadlock": models.mask(model.num_states, []),
        "goal": models.mask(model.num_states, [0]),
    }
    named = replace(model, labels=labels, initial_states=labels["init"])
    write_model(named, tmp_path / "model")
    run = prism(
        *("-importmodel", tmp_path / "model.all", f"-{model.kind.value.lower()}"),
        *("-pf", text, "-explicit", "-topological", "-epsilon", EPSILON, "-maxiters", 10**6),
        *("-exportvector", tmp_path / "values", *switches),
    )
    assert (tmp_path / "values").is_file(), run.output + run.errors
    values = np.array((tmp_path / "values").read_text().split(), dtype=float)
    found = COUNT.search(run.output)
    assert found is not None, run.output
    return values, int(found[1]), int(found[2])


def cases(most_telling, *axes):
    """The product of the axes; all but the most telling combinations take their time."""
    return [
        case if case in most_telling else pytest.param(*case, marks=pytest.mark.slow)
        for case in itertools.product(*axes)
    ]


@pytest.mark.prism
@pytest.mark.parametrize(
    ("kind", "method", "two_sided"),
    cases(
        [("P", Method.POWER, False), ("R", Method.JACOBI, True)],
        *(("P", "R"), (Method.POWER, Method.JACOBI), (False, True)),
    ),
)
def test_chains_take_prism_s_iterations(prism, tmp_path, kind, method, two_sided):
    model = block_chain(7)
    switches = [f"-{method.name.lower()}", *(["-ii"] if two_sided else [])]
    environment = settings_of(
        method=method, epsilon=EPSILON, max_iterations=10**6, bounds=two_sided
    )
    expect_prism_s_counts(prism, tmp_path, model, kind, None, environment, switches)


@pytest.mark.prism
@pytest.mark.parametrize(
    ("kind", "direction", "two_sided"),
    cases(
        [("P", models.MAX, True), ("R", models.MIN, False)],
        *(("P", "R"), DIRECTIONS, (False, True)),
    ),
)
def test_decisions_take_prism_s_iterations(prism, tmp_path, kind, direction, two_sided):
    model = block_mdp(5)
    switches = ["-valiter", *(["-ii"] if two_sided else [])]
    environment = settings_of(
        method=Method.VALUE_ITERATION, epsilon=EPSILON, max_iterations=10**6, bounds=two_sided
    )
    expect_prism_s_counts(prism, tmp_path, model, kind, direction, environment, switches)


def expect_prism_s_counts(prism, tmp_path, model, kind, direction, environment, switches):
    size = model.num_states
    extreme = "" if direction is None else direction.value
    everywhere, goal = np.ones(size, bool), models.mask(size, [0])
    rewards = None
    if kind == "P":
        text = f'P{extreme}=? [ F "goal" ]'
        result = until_probabilities(model, everywhere, goal, environment, direction=direction)
    else:
        # A reward of 1 a step; the goal is reached for sure once the trap is left.
        model = leaving_the_trap(model)
        text = f'R{extreme}=? [ F "goal" ]'
        of_rows = np.zeros(model.matrix.num_rows) if direction else None
        rewards = RewardStructure("steps", np.linspace(0.5, 3.0, size), of_rows)
        result = reachability_rewards(model, rewards, goal, environment, direction=direction)
        model = replace(model, rewards=(rewards,))
    values, several, count = prism_counts(prism, tmp_path, model, text, *switches)
    np.testing.assert_allclose(result.values, values, rtol=1e-8)
    assert f"{several} of several states" in result.note
    assert abs(result.iterations - count) <= 1


def leaving_the_trap(model):
    """The model whose state 1 steps to state 0."""
    matrix, groups = model.matrix, model.row_group_offsets
    row = 1 if groups is None else groups[1]
    columns = matrix.columns.copy()
    columns[matrix.row_offsets[row]] = 0
    return replace(model, matrix=replace(matrix, columns=columns))
