"""Which solutions are exact to the last digit."""

from __future__ import annotations

import numpy as np
import pytest

from engines.model.environment import SolverEnvironment
from engines.model.explicit import ModelKind
from engines.questions.reachability import solve_reachability
from engines.questions.time_bounded import time_bounded_until
from engines.systems.one_sided import Direction
from tests.engines import models

HERE = SolverEnvironment()


def _solved(rows, kind=ModelKind.DTMC, rewards=None):
    model = models.chain(kind, rows)
    unknown = np.array([state not in row or len(row) > 1 for state, row in enumerate(rows)])
    start = np.where(unknown, 0.0, 0.0)
    if rewards is None:
        start[-1] = 1.0
    return solve_reachability(model, unknown, start, HERE, rewards=rewards)


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([{1: 0.5, 2: 0.5}, {1: 1.0}, {2: 1.0}], ModelKind.DTMC),
        ([{0: 0.5, 1: 0.25, 2: 0.25}, {1: 1.0}, {2: 1.0}], ModelKind.DTMC),
        ([{1: 3.0, 2: 1.0}, {1: 1.0}, {2: 1.0}], ModelKind.CTMC),
    ],
)
def test_solutions_without_rounding_are_known_to_be_exact(rows, kind):
    assert _solved(rows, kind).unrounded


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([{1: 1 / 3, 2: 2 / 3}, {1: 1.0}, {2: 1.0}], ModelKind.DTMC),
        ([{0: 0.1, 1: 0.4, 2: 0.5}, {1: 1.0}, {2: 1.0}], ModelKind.DTMC),
        ([{1: 2.0, 2: 1.0}, {1: 1.0}, {2: 1.0}], ModelKind.CTMC),
        ([{1: 1e-20, 2: 1.0}, {1: 1.0}, {2: 1.0}], ModelKind.DTMC),
    ],
)
def test_rounded_ones_are_not(rows, kind):
    assert not _solved(rows, kind).unrounded


def test_a_second_solution_of_the_equations_is_not_taken_for_the_first():
    loop = models.mdp([[{0: 1.0}, {1: 0.5, 2: 0.5}], [{1: 1.0}], [{2: 1.0}]])
    unknown, start = np.array([True, False, False]), np.array([1.0, 0.0, 1.0])
    environment = SolverEnvironment()
    result = solve_reachability(loop, unknown, start, environment, direction=Direction.MAXIMISE)
    assert not result.unrounded


def test_rewards_without_rounding_are_exact():
    result = _solved([{0: 0.5, 1: 0.5}, {1: 1.0}], rewards=np.array([3.0, 0.0]))
    assert result.values[0] == 6.0
    assert result.unrounded


def test_a_target_that_no_time_reaches_has_probability_0_without_error():
    chain = models.chain(ModelKind.CTMC, [{1: 2.0}, {0: 1.0, 2: 1.0}, {}, {0: 3.0}])
    everywhere = np.ones(4, dtype=bool)
    never = time_bounded_until(chain, everywhere, np.zeros(4, dtype=bool), 0.0, 3.0, HERE)
    assert never.error_estimate == 0.0
    target = np.array([False, False, False, True])
    some = time_bounded_until(chain, everywhere, target, 0.0, 3.0, HERE)
    assert some.decided == (0.0, 1.0)
