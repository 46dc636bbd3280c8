"""What is claimed of the error of a solve."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from engines.automata import ltl
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.result import SolveResult, SweepCost
from engines.questions.long_run import long_run_rewards
from engines.questions.ltl import ltl_probabilities
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.total_rewards import total_rewards
from engines.systems.one_sided import Direction
from prism_hooks.claims import claim_of
from tests.engines import models

ABSOLUTE = SolverEnvironment(absolute=True)
BIG = 1e9 / 7
THIRDS = [{0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, {0: 1 / 7, 2: 6 / 7}, {2: 1.0}]
TARGET = np.array([False, False, True])
# x = r + x / 3 + y / 3 and y = x / 7 for the chain.
EARNED = Fraction(10**9, 7) / (1 - Fraction(1, 3) - Fraction(1, 21))


def _claim(result, environment=ABSOLUTE):
    return claim_of(result, absolute=environment.absolute, automatic=environment.automatic)


@pytest.mark.parametrize("scale", [1.0, 1e-9])
@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.CTMC])
@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("topological", [False, True])
def test_absolute_errors_are_in_the_unit_of_the_values(kind, total, topological, scale):
    rewards = RewardStructure("", np.array([BIG * scale, 0.0, 0.0]))
    model = models.chain(kind, THIRDS)
    environment = replace(ABSOLUTE, topological=topological)
    if total:
        result = total_rewards(model, rewards, environment)
    else:
        result = reachability_rewards(model, rewards, TARGET, environment)
    claim = _claim(result)
    assert claim.absolute
    off = abs(Fraction(float(result.values[0])) - EARNED * Fraction(scale))
    assert off <= claim.error <= 1e-13 * result.values[0]


def test_so_are_those_of_an_mdp_and_of_a_long_run():
    choices = models.mdp([[THIRDS[0], {0: 0.25, 1: 0.5, 2: 0.25}], [THIRDS[1]], [THIRDS[2]]])
    earned = RewardStructure("", np.array([BIG, 0.0, 0.0]))
    found = reachability_rewards(choices, earned, TARGET, ABSOLUTE, direction=Direction.MAXIMISE)
    off = abs(Fraction(float(found.values[0])) - EARNED)
    assert off <= _claim(found).error
    circle = models.chain(ModelKind.CTMC, [{1: 1.0}, {0: 2.0}])
    mean = long_run_rewards(circle, RewardStructure("", np.array([BIG, 0.0])), ABSOLUTE)
    claim = _claim(mean)
    assert abs(Fraction(float(mean.values[0])) - Fraction(2 * 10**9, 21)) <= claim.error
    assert 0.0 < claim.error <= 1e-12 * BIG


def test_the_error_of_a_complement_is_not_relative_to_it():
    rare = 5e-9
    choices = models.mdp([[{0: 0.5, 1: rare, 2: 0.5 - rare}], [{1: 1.0}], [{2: 1.0}]])
    atoms = {"a": np.array([False, True, False])}
    always = ltl.eventually(ltl.always(ltl.atom("a")))
    least = ltl_probabilities(
        choices, always, atoms, SolverEnvironment(), direction=Direction.MINIMISE
    )
    exact = Fraction(rare) / (Fraction(rare) + Fraction(0.5 - rare))
    claim = _claim(least, SolverEnvironment())
    assert claim.absolute
    assert abs(Fraction(float(least.values[0])) - exact) <= claim.error <= 1e-13


def _named(**known):
    result = SolveResult(
        np.array([0.5, 0.25]),
        SolveResult.exact(np.zeros(1), "").status,
        "Jacobi",
        **{"iterations": 100, "change": 1e-8, "residual": 1e-9, "error_estimate": 1e-4, **known},
        seconds=0.0,
        setup_seconds=0.0,
        sweeping_seconds=0.0,
        cost=SweepCost((), "", "", 0),
    )
    return _claim(result, SolverEnvironment(method=Method.JACOBI))


def test_a_named_method_claims_what_the_log_warns_of():
    assert _named().error == 1e-4
    assert _named(error_estimate=1e-9).error == 1e-7
    assert _named(error_estimate=np.inf).error == 1e-7


def test_sweeps_that_stand_still_anywhere_are_not_exact():
    assert np.isnan(_named(change=0.0, error_estimate=0.0, residual=0.1).error)
    assert 0.0 < _named(change=0.0, error_estimate=0.0, residual=0.0).error < 1e-14


def test_where_the_relative_error_is_open_the_claim_is_the_largest_distance_to_a_bound():
    values = np.array([0.5, 0.25])
    open_ = replace(
        SolveResult.exact(values, ""), error_estimate=np.inf, two_sided=True, unrounded=False
    )
    for lower, upper, distance in (
        ([0.0, 0.2], [0.6, 0.25], 0.5),
        ([0.4, 0.0], [0.5, 0.95], 0.7),
    ):
        claim = _claim(replace(open_, bounds=(np.array(lower), np.array(upper))))
        assert claim.absolute
        assert claim.guaranteed
        assert distance <= claim.error <= distance * (1.0 + 1e-12)
