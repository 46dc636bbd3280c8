"""Slow sweeps on the CPU give way to one component after the other, where none is large."""

from __future__ import annotations

import numpy as np
import pytest

from engines.methods import direct
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, Method
from engines.model.environment import SolverEnvironment as Environment
from engines.model.events import Kind
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.questions import reachability
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.until import until_probabilities
from tests.engines import models

PAIRS = 12_000
FAIL = 1e-5


@pytest.fixture(autouse=True)
def no_elimination_at_once(monkeypatch):
    # Lines have factors as sparse as they are.
    monkeypatch.setattr(direct, "at_once", lambda *_: False)


def line_of_pairs(kind, looped=False, onwards=0.5):
    """Pairs of states up to the target; the first of each goes on, fails or visits the second.

    An MDP's may also take a way that fails more often. With a loop the last
    pair leads back to the first now and then, so that all are one component.
    """
    fail, target = 2 * PAIRS, 2 * PAIRS + 1
    columns, values, offsets, groups = [], [], [0], [0]

    def row(entries):
        columns.extend(entries)
        values.extend(entries.values())
        offsets.append(len(columns))

    for pair in range(PAIRS):
        first, second = 2 * pair, 2 * pair + 1
        after = target if pair == PAIRS - 1 else first + 2
        leaving = {after: onwards - FAIL, second: 1.0 - onwards, fail: FAIL}
        if looped and pair == PAIRS - 1:
            leaving = {**leaving, after: onwards - 2 * FAIL, 0: FAIL}
        row(dict(sorted(leaving.items())))
        if kind is ModelKind.MDP:
            row({second: 0.9, fail: 0.1})
        groups.append(len(offsets) - 1)
        row({first: 1.0})
        groups.append(len(offsets) - 1)
    for state in (fail, target):
        row({state: 1.0})
        groups.append(len(offsets) - 1)
    matrix = CsrMatrix(
        np.array(offsets, np.int32), np.array(columns, np.int32), np.array(values), target + 1
    )
    goal = np.zeros(target + 1, bool)
    goal[target] = True
    in_groups = np.array(groups, np.int32) if kind is ModelKind.MDP else None
    return ExplicitModel(kind, matrix, in_groups), goal


def kinds_of(result):
    return [event.kind for event in result.events]


@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.MDP])
def test_probabilities_of_a_long_line_are_exact(kind):
    model, goal = line_of_pairs(kind)
    everywhere = np.ones(len(goal), bool)
    direction = models.MAX if kind is ModelKind.MDP else None
    result = until_probabilities(
        model, everywhere, goal, Environment(device=DeviceChoice.CPU), direction=direction
    )
    assert Kind.PARTS_TOOK_OVER in kinds_of(result)
    onwards = (0.5 - FAIL) / 0.5
    exact = onwards ** np.arange(PAIRS, 0, -1)
    error = np.abs(result.values[: 2 * PAIRS : 2] / exact - 1.0).max()
    assert error <= result.error_estimate + PAIRS * 2.0**-52
    assert error <= 1e-6
    # Some hundred sweeps, where a line takes as many as it is long.
    assert result.iterations < 1_000


def test_rewards_of_a_long_line_are_exact():
    model, goal = line_of_pairs(ModelKind.DTMC)
    # Failing ends it as well.
    goal[-2] = True
    earned = RewardStructure("", np.ones(len(goal)))
    result = reachability_rewards(model, earned, goal, Environment(device=DeviceChoice.CPU))
    assert Kind.PARTS_TOOK_OVER in kinds_of(result)
    # A pair takes 3 steps but for failures, and is reached from the one before so often.
    onwards = (0.5 - FAIL) / 0.5
    exact = 3.0 * (1.0 - onwards ** np.arange(PAIRS, 0, -1)) / (1.0 - onwards)
    error = np.abs(result.values[: 2 * PAIRS : 2] / exact - 1.0).max()
    assert error <= result.error_estimate + PAIRS * 2.0**-52
    assert error <= 1e-6


def test_a_large_component_is_left_to_sweeps():
    model, goal = line_of_pairs(ModelKind.DTMC, looped=True)
    environment = Environment(device=DeviceChoice.CPU)
    result = until_probabilities(model, np.ones(len(goal), bool), goal, environment)
    assert Kind.PARTS_TOOK_OVER not in kinds_of(result)


def test_many_slow_components_are_left_to_what_takes_the_whole(monkeypatch):
    # A thousand sweeps of a pair do not suffice.
    model, goal = line_of_pairs(ModelKind.DTMC, onwards=1e-3)
    asked = []
    by_elimination = reachability._by_elimination
    monkeypatch.setattr(
        reachability, "_by_elimination", lambda *part: asked.append(0) or by_elimination(*part)
    )
    environment = Environment(device=DeviceChoice.CPU)
    result = until_probabilities(model, np.ones(len(goal), bool), goal, environment)
    assert Kind.PARTS_TOOK_OVER not in kinds_of(result)
    assert len(asked) == 100
    exact = ((1e-3 - FAIL) / 1e-3) ** np.arange(PAIRS, 0, -1)
    error = np.abs(result.values[: 2 * PAIRS : 2] / exact - 1.0).max()
    assert error <= max(result.error_estimate, 1e-6)


def test_a_named_method_makes_its_own_sweeps():
    model, goal = line_of_pairs(ModelKind.DTMC)
    environment = Environment(device=DeviceChoice.CPU, method=Method.JACOBI, max_iterations=3_000)
    result = until_probabilities(model, np.ones(len(goal), bool), goal, environment)
    assert Kind.PARTS_TOOK_OVER not in kinds_of(result)
    assert result.iterations == 3_000
