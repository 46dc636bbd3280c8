"""A line of 10⁵ states and a row of 10⁵ entries: closed forms, whatever is asked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammainc
from scipy.stats import poisson

from engines.model.environment import DeviceChoice, Method
from engines.model.environment import SolverEnvironment as Environment
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.result import Status
from engines.questions.bounded import bounded_until
from engines.questions.long_run import long_run_probabilities
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.time_bounded import distribution_at, time_bounded_until
from engines.questions.until import until_probabilities
from engines.systems.one_sided import Direction
from tests.engines.random_models import long_line, star

CTMC, MDP = ModelKind.CTMC, ModelKind.MDP
LARGE = 100_002


def nearly(result, expected, relative, absolute=0.0):
    """Compare values of many states; bounds have to hold but for rounding of what is expected."""
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, expected, rtol=relative, atol=absolute)
    if result.bounds is not None:
        lower, upper = result.bounds
        assert (lower <= expected * (1.0 + 1e-10) + absolute).all()
        assert (expected * (1.0 - 1e-10) - absolute <= upper).all()


@pytest.mark.parametrize("method", [Method.AUTO, Method.INTERVAL])
@pytest.mark.parametrize("kind", ModelKind)
def test_a_line_of_a_hundred_thousand_states(kind, method):
    stray = 1e-5
    model = long_line(kind, LARGE, stray)
    states, target = np.arange(LARGE), np.arange(LARGE) == LARGE - 2
    ends, everywhere = states >= LARGE - 2, np.ones(LARGE, dtype=np.bool_)
    arriving = (1.0 - stray) ** np.maximum(LARGE - 2 - states, 0)
    arriving[-1] = 0.0
    walking = np.where(ends, 0.0, (1.0 - arriving) / stray)
    least, most = (Direction.MINIMISE, Direction.MAXIMISE) if kind is MDP else (None, None)
    environment = Environment(device=DeviceChoice.CPU, method=method, topological=True)
    nearly(
        until_probabilities(model, everywhere, target, environment, direction=most), arriving, 1e-6
    )
    each_step = RewardStructure("", 1.0 * ~ends)
    nearly(
        reachability_rewards(model, each_step, ends, environment, direction=least), walking, 1e-6
    )
    if kind is not MDP:
        nearly(long_run_probabilities(model, target, environment), arriving, 1e-6)


@pytest.mark.parametrize("kind", ModelKind)
def test_bounds_of_steps_and_of_time_along_a_line_of_a_hundred_thousand_states(kind):
    model, states = long_line(kind, LARGE, 0.0), np.arange(LARGE)
    target, everywhere = states == LARGE - 2, np.ones(LARGE, dtype=np.bool_)
    left = LARGE - 2 - states
    environment = Environment(device=DeviceChoice.CPU)
    if kind is CTMC:
        # The time of k jumps of rate 1 has an Erlang distribution.
        expected = np.where(left > 0, gammainc(np.maximum(left, 1), 40.0), left == 0)
        result = time_bounded_until(model, everywhere, target, 0.0, 40.0, environment)
        nearly(result, expected, 1e-9, result.error_estimate)
        result = distribution_at(model, np.eye(1, LARGE)[0], 40.0, environment)
        nearly(result, poisson.pmf(states, 40.0), 1e-9, result.error_estimate)
        return
    direction = Direction.MAXIMISE if kind is MDP else None
    result = bounded_until(model, everywhere, target, 50, environment, direction=direction)
    np.testing.assert_array_equal(result.values, (left >= 0) & (left <= 50))


@pytest.mark.parametrize("topological", [False, True])
@pytest.mark.parametrize("method", [Method.AUTO, Method.INTERVAL])
@pytest.mark.parametrize("kind", ModelKind)
def test_a_row_of_a_hundred_thousand_entries(kind, method, topological):
    model, states = star(kind, LARGE), np.arange(LARGE)
    target, everywhere = states == LARGE - 2, np.ones(LARGE, dtype=np.bool_)
    direction = Direction.MAXIMISE if kind is MDP else None
    environment = Environment(
        device=DeviceChoice.CPU, method=method, epsilon=1e-9, topological=topological
    )
    ending = 0.5 * states / LARGE
    # The centre has the mean of its rays, each of which has half of the centre.
    centre = 2.0 * float(np.mean(ending[1:-2]))
    expected = 0.5 * centre + ending
    expected[0], expected[-2:] = centre, (1.0, 0.0)
    result = until_probabilities(model, everywhere, target, environment, direction=direction)
    nearly(result, expected, 1e-8)
