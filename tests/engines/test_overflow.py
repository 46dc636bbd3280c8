"""Numbers too large for a double: refused by name, and never a result that is not a number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.errors import ConvergenceError, InvalidModelError
from engines.model.csr import CsrMatrix
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.result import SolveResult
from engines.questions.time_bounded import (
    cumulative_rewards_until,
    distribution_at,
    instantaneous_rewards_at,
    time_bounded_until,
)
from prism_hooks.claims import UNKNOWN, UNSTATED, claim_of


def chain(first, second):
    """0 → 1 → 2 with two rates."""
    columns = np.array([1, 2, 2], dtype=np.int32)
    matrix = CsrMatrix(np.arange(4, dtype=np.int32), columns, np.array([first, second, 1.0]), 3)
    return ExplicitModel(ModelKind.CTMC, matrix)


def test_an_exit_rate_that_overflows_is_refused_by_its_state():
    offsets, columns = np.array([0, 1, 3], dtype=np.int32), np.array([1, 0, 1], dtype=np.int32)
    model = ExplicitModel(
        ModelKind.CTMC, CsrMatrix(offsets, columns, np.array([1e308, 1e308, 1e308]), 2)
    )
    with pytest.raises(InvalidModelError, match="exit rate of state 1 overflows"):
        model.check()
    chain(1e308, 1e308).check()


@pytest.mark.parametrize("time", [1e308, np.inf, np.nan])
def test_a_rate_times_a_time_that_overflows_is_refused_by_its_state(time):
    model, environment = chain(100.0, 1.0), SolverEnvironment()
    rewards = RewardStructure("", np.arange(3.0))
    for ask in (cumulative_rewards_until, instantaneous_rewards_at):
        with pytest.raises(InvalidModelError, match="rate 100 of state 0 times time"):
            ask(model, rewards, time, environment)
    with pytest.raises(InvalidModelError, match="rate 100 of state 0 times time"):
        distribution_at(model, np.eye(3)[0], time, environment)
    everywhere, target = np.ones(3, dtype=np.bool_), np.arange(3) == 2
    if np.isfinite(time):
        with pytest.raises(InvalidModelError, match="rate 100 of state 0 times time"):
            time_bounded_until(model, everywhere, target, 0.0, time, environment)


def test_a_reward_times_a_time_that_overflows_is_refused_by_its_state():
    rewards = RewardStructure("", np.array([0.0, 1e300, 0.0]))
    with pytest.raises(InvalidModelError, match="of state 1 times time"):
        cumulative_rewards_until(chain(1e-300, 1e-300), rewards, 1e10, SolverEnvironment())


def test_a_value_that_is_not_a_number_is_never_a_result():
    result = SolveResult.exact(np.array([0.5, np.nan, np.inf]), "Jacobi")
    with pytest.raises(ConvergenceError, match="Jacobi: the value of state 1 is not a number"):
        result.raise_unless_converged()
    SolveResult.exact(np.array([0.5, np.inf]), "Jacobi").raise_unless_converged()


@pytest.mark.parametrize("absolute", [True, False])
def test_nothing_is_exact_whose_residual_is_not_0(absolute):
    still = replace(SolveResult.exact(np.array([1 / 3]), "JOR"), residual=1.67)
    swept = replace(still, iterations=1)
    for result in (still, swept):
        claim = claim_of(result, absolute=absolute, automatic=False)
        assert claim in (UNKNOWN, UNSTATED) or claim.error >= 1.67
    lost = replace(still, iterations=9, error_estimate=np.inf, change=np.inf)
    assert claim_of(lost, absolute=absolute, automatic=True).error == np.inf
    unknown = claim_of(replace(swept, residual=np.nan), absolute=absolute, automatic=False)
    assert unknown in (UNKNOWN, UNSTATED) or unknown.error > 0.0
