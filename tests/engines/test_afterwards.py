"""The error of a named method, found when its iterations have ended."""

from __future__ import annotations

import numpy as np
import pytest

from engines.host.elimination import Elimination
from engines.methods import afterwards, elimination
from engines.methods.afterwards import distance, measured
from engines.model.environment import Convention, DeviceChoice, Method, SolverEnvironment
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.result import SolveResult, Status
from engines.questions.long_run import long_run_probabilities, long_run_rewards
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.questions.until import until_probabilities
from prism_hooks.claims import claim_of
from tests.engines import models

NAMED = [Method.POWER, Method.JACOBI, Method.JOR, Method.GAUSS_SEIDEL, Method.SOR]
LEAK = 1e-11


def _two_boxes(kind):
    half, third = (1 - LEAK) / 2, (1 - 3 * LEAK) / 2
    inside = [{0: half, 1: half, 2: LEAK}] * 2
    return models.chain(kind, [*inside, *[{2: third, 3: third, 0: 3 * LEAK}] * 2])


def _claim(result, environment):
    return claim_of(result, absolute=environment.absolute, automatic=environment.automatic)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.CTMC])
def test_a_long_run_that_mixes_slowly_lies_within_its_error(kind, method, absolute):
    model = _two_boxes(kind)
    environment = SolverEnvironment(method=method, omega=0.9, epsilon=1e-6, absolute=absolute)
    rewards = RewardStructure("r", state_rewards=np.array([1.0, 1.0, 10.0, 10.0]))
    mean = long_run_rewards(model, rewards, environment)
    share = long_run_probabilities(model, np.array([True, True, False, False]), environment)
    for result, exact in ((mean, 3.25), (share, 0.75)):
        error = _claim(result, environment).error
        scale = 1.0 if absolute else result.values
        assert np.all(np.abs(result.values - exact) <= error * scale * (1 + 1e-12))


@pytest.mark.parametrize("absolute", [False, True])
def test_cycles_that_the_user_named_lie_within_their_error(absolute):
    # Two halves of a line that hardly exchange anything: cycles of one change little.
    size, leak = 400, 1e-9
    rows = []
    for state in range(size):
        up, down = (leak, 0.3) if state == size // 2 - 1 else (0.3, 0.3)
        down = leak / 3 if state == size // 2 else down
        row = {}
        if state + 1 < size:
            row[state + 1] = up
        if state:
            row[state - 1] = down
        row[state] = 1.0 - sum(row.values())
        rows.append(row)
    model = models.chain(ModelKind.DTMC, rows)
    environment = SolverEnvironment(method=Method.MULTILEVEL, epsilon=1e-3, absolute=absolute)
    result = long_run_probabilities(model, np.arange(size) >= size // 2, environment)
    error = _claim(result, environment).error
    scale = 1.0 if absolute else result.values
    assert np.all(np.abs(result.values - 0.75) <= error * scale * (1 + 1e-9))


def test_a_probability_and_a_reward_that_are_reached_slowly_lie_within_their_errors():
    move = 2.0**-17
    chain = models.chain(ModelKind.DTMC, [{0: 1 - 2 * move, 1: move, 2: move}, {1: 1.0}, {2: 1.0}])
    unknown = np.array([True, False, False])
    environment = SolverEnvironment(method=Method.POWER, epsilon=1e-6)
    for start, rewards, exact in (
        (np.array([0.0, 1.0, 0.0]), None, 0.5),
        (np.zeros(3), np.array([1.0, 0.0, 0.0]), 2.0**16),
    ):
        result = solve_reachability(chain, unknown, start, environment, rewards=rewards)
        error = _claim(result, environment).error
        assert 1e-3 * exact < abs(result.values[0] - exact) <= error * result.values[0]


def _three_queues(places):
    """Return independent queues of so many places each, and how often each state is seen."""
    arrive, leave = 1.0, 2.0
    strides = (places * places, places, 1)
    rows = []
    for state in range(places**3):
        row = {}
        for stride in strides:
            waiting = state // stride % places
            if waiting + 1 < places:
                row[state + stride] = arrive
            if waiting:
                row[state - stride] = leave
        rows.append(row)
    one = (arrive / leave) ** np.arange(places)
    one /= one.sum()
    return models.chain(ModelKind.CTMC, rows), np.kron(np.kron(one, one), one)


@pytest.mark.parametrize("convention", [Convention.SPARSE, Convention.EXPLICIT])
@pytest.mark.parametrize("absolute", [False, True])
def test_a_steady_state_is_measured_without_an_elimination_that_fills_up(
    absolute, convention, monkeypatch
):
    limits = []

    class Noted(Elimination):
        def __init__(self, *words, most_operations, **more):
            limits.append(most_operations)
            super().__init__(*words, most_operations=most_operations, **more)

    monkeypatch.setattr(elimination, "Elimination", Noted)
    model, exact = _three_queues(14)
    environment = SolverEnvironment(
        method=Method.GAUSS_SEIDEL, absolute=absolute, convention=convention, max_iterations=10**6
    )
    result = solve_steady_state(model, np.ones(len(exact), dtype=np.bool_), environment)
    error = _claim(result, environment).error
    assert np.all(np.abs(result.values - exact) <= error * (1.0 if absolute else result.values))
    assert error < 0.1
    assert all(limit <= elimination.AT_ONCE_OPERATIONS for limit in limits)


def test_values_below_the_normal_numbers_leave_the_error_of_the_others_known():
    smallest = 5e-324
    result = SolveResult.exact(np.array([0.5, 0.0, 2 * smallest]), Method.JACOBI)
    result = SolveResult.combined(result.values, [result], 1e-9)
    named = SolverEnvironment(method=Method.JACOBI)
    other = np.array([0.5, smallest, smallest])
    found = measured(result, named, lambda: (other, 1e-8))
    assert found.error_known
    assert found.error_estimate == 1e-8
    assert np.all(np.abs(found.values - other)[1:] <= 2 * found.trusted_above)
    assert not measured(result, named, lambda: (np.array([0.5, 1e-300, 0.0]), 1e-8)).error_known


def test_where_no_other_solution_is_affordable_no_error_is_stated():
    result = SolveResult.exact(np.array([0.5, 0.25]), Method.JACOBI)
    result = SolveResult.combined(result.values, [result], 1e-9)
    assert result.status is Status.CONVERGED
    named = SolverEnvironment(method=Method.JACOBI)

    def too_dear():
        raise RuntimeError

    for reference in (None, too_dear):
        assert np.isnan(_claim(measured(result, named, reference), named).error)
        assert measured(result, SolverEnvironment(), reference) is result
    found = measured(result, named, lambda: (np.array([0.5, 0.5]), 1e-15))
    assert 1.0 < _claim(found, named).error < 1.0 + 1e-14


def _slow_walk(size):
    """A walk over so many states, a hundredth of which ends in each step: in state 0 or 1."""
    inner = np.random.default_rng(1).integers(2, size, (size - 2, 2))
    rows = [{0: 0.004, 1: 0.006, int(i): 0.5, int(j): 0.49} for i, j in inner]
    return models.chain(ModelKind.DTMC, [{0: 1.0}, {1: 1.0}, *rows])


@pytest.mark.parametrize("method", [Method.JACOBI, Method.POWER, Method.GAUSS_SEIDEL])
def test_a_large_system_is_solved_a_second_time_if_the_first_was_little_work(method, monkeypatch):
    size = afterwards.FEW_ROWS + 1000
    model = _slow_walk(size)
    target = np.arange(size) == 0
    environment = SolverEnvironment(method=method, device=DeviceChoice.CPU)
    result = until_probabilities(model, np.ones(size, np.bool_), target, environment)
    exact = until_probabilities(
        model, np.ones(size, np.bool_), target, SolverEnvironment(epsilon=1e-13)
    )
    assert result.error_known
    assert distance(result.values, exact.values, absolute=False) <= result.error_estimate < 1e-3
    monkeypatch.setattr(afterwards, "MOST_WORK", 1e5)
    again = until_probabilities(model, np.ones(size, np.bool_), target, environment)
    assert not again.error_known
    np.testing.assert_array_equal(again.values, result.values)


def test_equal_infinities_are_no_distance():
    values, exact = np.array([np.inf, 0.0, 2.0]), np.array([np.inf, 0.0, 1.0])
    assert distance(values, exact, absolute=True) == 1.0
    assert distance(values, exact, absolute=False) == 0.5
