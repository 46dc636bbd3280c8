"""Optimistic value iteration: guesses that a sweep verified are bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.devices.two_sided import two_sided_sweeper
from engines.model.environment import DeviceChoice, Method
from engines.model.environment import SolverEnvironment as Environment
from engines.model.explicit import RewardStructure
from engines.model.result import Status
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.until import until_probabilities
from engines.systems.one_sided import SweepSystem
from engines.systems.two_sided import TwoSidedSystem
from tests.engines import exact, models

CPU = Environment(method=Method.OPTIMISTIC, device=DeviceChoice.CPU)
DIRECTIONS = (models.MIN, models.MAX)


def everywhere(size):
    return np.ones(size, dtype=bool)


@pytest.mark.parametrize("seed", range(8))
def test_chains(device, seed):
    rows = exact.random_chain(seed)
    size = len(rows)
    model, target = exact.dtmc(rows), models.mask(size, [0, 3])
    environment = replace(CPU, device=device)
    result = until_probabilities(model, everywhere(size), target, environment)
    assert result.status is Status.CONVERGED
    exact.assert_encloses(result, exact.until(rows, set(range(size)), {0, 3}), 1e-6)
    payments = exact.random_payments(seed, size)
    rewards = RewardStructure("", exact.array(payments))
    result = reachability_rewards(model, rewards, target, environment)
    exact.assert_encloses(result, exact.reward(rows, payments, {0, 3}), 1e-6)


@given(st.integers(0, 10**9), st.sampled_from(DIRECTIONS), st.booleans())
def test_mdps_of_any_seed(seed, direction, absolute):
    choices = exact.random_choices(seed, 4)
    model, target = exact.mdp(choices), models.mask(4, [0])
    environment = replace(CPU, absolute=absolute)
    result = until_probabilities(model, everywhere(4), target, environment, direction=direction)
    values = exact.best_until(choices, set(range(4)), {0}, direction)
    exact.assert_encloses(result, values, 1e-6, absolute)
    payments = exact.random_payments(seed, model.matrix.num_rows)
    rewards = RewardStructure("", np.zeros(4), exact.array(payments))
    result = reachability_rewards(model, rewards, target, environment, direction=direction)
    values = exact.best_reward(choices, payments, {0}, direction)
    exact.assert_encloses(result, values, 1e-6, absolute)


def test_a_chain_that_is_slow_but_not_hopeless_is_swept_to_the_end(device):
    model = models.gamblers_ruin(60)
    target = models.mask(61, [60])
    result = until_probabilities(model, everywhere(61), target, replace(CPU, device=device))
    answer = models.gamblers_ruin_answer(60)
    assert result.status is Status.CONVERGED
    assert (result.bounds[0] <= answer).all()
    assert (answer <= result.bounds[1]).all()


def test_no_bound_is_claimed_before_a_guess_is_verified():
    model = models.gamblers_ruin(400)
    environment = replace(CPU, max_iterations=500, max_iterations_named=True)
    target = models.mask(401, [400])
    result = until_probabilities(model, everywhere(401), target, environment)
    assert result.status is Status.NOT_CONVERGED
    assert (result.bounds[1][1:400] == 1.0).all()
    rewards = RewardStructure("", np.ones(401))
    target = models.mask(401, [0, 400])
    result = reachability_rewards(model, rewards, target, environment)
    assert np.isinf(result.bounds[1][1:400]).all()
    assert (result.values == result.bounds[0]).all()


def test_a_wrong_guess_is_not_verified(device):
    rows = [{0: 0.5, 1: 0.25, 2: 0.25}, {1: 1.0}, {2: 1.0}]
    model = models.dtmc(rows)
    # The value is 1/2, and a guess of 0.3 ten times as far as it must not pass.
    plain = SweepSystem(model.matrix.select_rows(np.array([0])), np.array([0.1, 1.0, 0.0]))
    plain = replace(plain, states=np.array([0], dtype=np.int32))
    system = TwoSidedSystem(plain, plain.start.copy())
    sweeper, _ = two_sided_sweeper(system, Environment(device=device), -1.0)
    sweeper.guess_upper(2.0, False)
    assert sweeper.bounds()[1][0] == pytest.approx(0.3)
    record = sweeper.run(20)
    assert (record.rises > 0.0).all()
    assert record.crossings[-1] > 0.1
    sweeper.guess_upper(1.0, True)
    assert (sweeper.run(4).rises == 0.0).all()


def test_an_epsilon_below_rounding_widens_the_guess_until_it_holds():
    rows = exact.random_chain(2)
    size = len(rows)
    environment = replace(CPU, epsilon=1e-17)
    result = until_probabilities(
        exact.dtmc(rows), everywhere(size), models.mask(size, [0]), environment
    )
    exact.assert_encloses(result, exact.until(rows, set(range(size)), {0}), 1e-12)
    assert result.status is not Status.CONVERGED or result.change < 1e-17 or result.change == 0.0
