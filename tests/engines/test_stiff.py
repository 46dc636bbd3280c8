"""Rates that lie far apart: every value is within its error, and right to nine digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.until import until_probabilities
from engines.systems.one_sided import Direction
from tests.engines import models
from tests.engines.stiff_models import StiffModel, exact_values, stiff_model

KINDS = (ModelKind.DTMC, ModelKind.CTMC, ModelKind.MDP)


def answers(model: StiffModel, environment: SolverEnvironment):
    """Yield the result and the exact values of each question."""
    explicit, goal, absorbing = model.explicit(), model.goal, model.absorbing
    remain = np.ones(len(goal), dtype=np.bool_)
    directions = [None]
    if model.kind is ModelKind.MDP:
        directions = [Direction.MINIMISE, Direction.MAXIMISE]
    for direction in directions:
        maximise = direction is Direction.MAXIMISE
        yield (
            until_probabilities(explicit, remain, goal, environment, direction=direction),
            exact_values(model, rewards=False, maximise=maximise),
        )
        yield (
            reachability_rewards(
                explicit, explicit.rewards[0], absorbing, environment, direction=direction
            ),
            exact_values(model, rewards=True, maximise=maximise),
        )


def worst_error(values: np.ndarray, exact: list[Fraction]) -> float:
    """Return the largest relative error; infinite where 0 is not met."""
    errors = [0.0]
    for value, right in zip(values, exact, strict=True):
        if right == 0:
            errors.append(0.0 if value == 0.0 else np.inf)
        else:
            errors.append(float(abs(Fraction(float(value)) - right) / right))
    return max(errors)


def assert_as_promised(model: StiffModel):
    for result, exact in answers(model, SolverEnvironment()):
        error = worst_error(result.values, exact)
        assert error <= max(result.error_estimate, 2.0**-52), model.seed
        assert error <= 1e-9, model.seed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_each_value_is_within_its_error_and_right_to_nine_digits(kind, seed):
    assert_as_promised(stiff_model(kind, seed, largest=30))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(100, 170))
def test_two_hundred_and_ten_models_keep_the_promise(kind, seed):
    # Exact policy iteration of more states takes minutes.
    largest = 60 if kind is ModelKind.MDP or seed % 7 else 400
    assert_as_promised(stiff_model(kind, seed, largest))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(20, 26))
def test_bounds_hold_the_exact_values_and_end_soon(kind, seed):
    model = stiff_model(kind, seed, largest=12)
    environment = SolverEnvironment(method=Method.INTERVAL, epsilon=1e-6)
    for result, exact in answers(model, environment):
        lower, upper = result.bounds
        for low, value, high in zip(lower, exact, upper, strict=True):
            assert Fraction(float(low)) <= value <= Fraction(float(high)), seed
        assert result.iterations < 100_000


def rarely_left(kind: ModelKind) -> ExplicitModel:
    """Return a model that goes to and fro between two states, and leaves 1 with 1e-16 each way."""
    rows = [{1: 1.0}, {0: 1.0, 2: 1e-16, 3: 1e-16}, {2: 1.0}, {3: 1.0}]
    if kind is ModelKind.MDP:
        return models.mdp([[row, row] for row in rows])
    return models.ctmc(rows) if kind is ModelKind.CTMC else models.dtmc(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_loops_that_are_hardly_left_end_soon(kind):
    environment = SolverEnvironment(method=Method.INTERVAL, epsilon=1e-6)
    model, everywhere = rarely_left(kind), np.ones(4, dtype=np.bool_)
    direction = Direction.MAXIMISE if kind is ModelKind.MDP else None
    result = until_probabilities(
        model, everywhere, models.mask(4, [2]), environment, direction=direction
    )
    lower, upper = result.bounds
    assert lower[0] <= 0.5 <= upper[0] <= lower[0] * (1.0 + 1e-6)
    assert result.iterations < 100_000


@pytest.mark.parametrize("up", [0.3, 0.01])
def test_bounds_of_a_walk_that_mostly_returns_to_its_middle_end_soon(up):
    # From the middle a run of `length` steps outwards, each made with probability `up`, is wanted.
    length = 28
    middle, size = length, 2 * length + 1
    rows = [{middle: 1.0 - up, i + (1 if i > middle else -1): up} for i in range(size)]
    rows[middle] = {middle - 1: 0.6, middle + 1: 0.4}
    rows[0], rows[-1] = {0: 1.0}, {size - 1: 1.0}
    environment = SolverEnvironment(method=Method.INTERVAL, epsilon=1e-6)
    goal = models.mask(size, [size - 1])
    result = until_probabilities(
        models.dtmc(rows), np.ones(size, dtype=np.bool_), goal, environment
    )
    lower, upper = result.bounds
    assert (upper <= 1.0).all()
    assert lower[middle] <= 0.4 <= upper[middle] <= lower[middle] * (1.0 + 1e-6)
    assert result.iterations < 100_000
