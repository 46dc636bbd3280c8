"""What proofs rest on, term by term: each of these fails where one is left out."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betaln

from engines.errors import ConvergenceError
from engines.methods.gmres import solve_by_stretches
from engines.methods.iterate import _Judge
from engines.methods.strategy import optimal_rows
from engines.model.csr import CsrMatrix
from engines.model.environment import BoundMethod, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.result import SolveResult, Status
from engines.montecarlo.intervals import mixture_interval
from engines.proofs import upper_bounds
from engines.proofs.doubling import Doubling
from engines.proofs.induction import proven_error
from engines.questions import long_run
from engines.questions.component_averages import Averages
from engines.questions.long_run import long_run_rewards
from engines.questions.ltl import _complement
from engines.solve import certified
from engines.solve.narrow import Narrowing
from engines.systems.one_sided import SweepSystem
from engines.systems.plain import plain_system
from engines.systems.space import Stretched
from engines.systems.two_sided import rounding_of_rows
from tests.engines import models

UNIT = 2.0**-53


def halving(offset=1.0):
    """State 0 earns each step and ends with probability 1/2."""
    model = models.dtmc([{0: 0.5, 1: 0.5}, {1: 1.0}])
    rows = model.matrix.select_rows(np.array([0]))
    return model, SweepSystem(rows, np.zeros(2), np.array([offset]), np.array([0]))


def test_small_changes_are_believed_when_they_are_seen_twice():
    judge = _Judge(SolverEnvironment(), None, None)
    judge.look(16, 0.5 ** np.arange(40.0, 56.0))
    assert judge.error < SolverEnvironment().epsilon
    assert not judge.met
    judge.look(32, 0.5 ** np.arange(56.0, 72.0))
    assert judge.met


def test_doubling_wants_more_than_twice_the_sweeps():
    doubling = Doubling(absolute=False)
    doubling.keep(10, np.ones(3))
    risen = np.full(3, 1.01)
    assert doubling.error(18, risen) == doubling.error(20, risen) == math.inf
    assert 1e-4 < doubling.error(21, risen) < 1.1e-4


def test_one_state_that_rises_is_enough_to_be_no_upper_bound():
    class Rising:
        def __init__(self, system):
            self.guess = system.start

        def run(self, sweeps):
            return np.zeros(sweeps)

        def values(self):
            return self.guess + np.array([0.0, 0.0, 0.1])

    system = SweepSystem(models.line(3).matrix, np.zeros(3))
    assert proven_error(system, Rising, np.ones(3), 0.5, False, 64) == math.inf


class Scripted:
    """A space, and the sweeper that has it, whose stretches are as told."""

    def __init__(self, *looks):
        self.looks = iter(looks)

    def space(self, _system):
        return self

    def begin(self, _sweeps):
        pass

    def stretch(self, _sweeps):
        return next(self.looks)

    def combine(self):
        pass


def test_what_a_stretch_rounds_is_added_to_what_it_changes():
    _, system = halving()
    # 32 sweeps of a row of two entries.
    rounding = 5e-7
    reach = rounding / (32 * 6 * UNIT)
    space = Scripted(Stretched(8e-7, reach, 1.0), Stretched(1e-7, reach, 1.0))
    found = solve_by_stretches(system, space, SolverEnvironment(epsilon=1e-6), 1000)
    assert found.sweeps == 96
    assert found.error == pytest.approx(6e-7)


def test_an_absolute_error_is_that_of_the_solution_not_of_the_iterate():
    _, system = halving()
    environment = SolverEnvironment(epsilon=20.0, absolute=True)
    found = solve_by_stretches(system, Scripted(Stretched(0.5, 0.0, 10.0)), environment, 1000)
    # x ≤ y + θ x, so that y = 10 and θ = 1/2 allow for x = 20.
    assert found.error == pytest.approx(10.0)


def test_longer_rows_round_more():
    offsets = np.array([0, 1, 1001])
    matrix = CsrMatrix(offsets, np.zeros(1001, np.int32), np.full(1001, 1e-3), 1)
    rounding = rounding_of_rows(matrix, 2)
    assert rounding[0] >= 2 * UNIT
    assert rounding[1] >= 1001 * UNIT


def test_a_bound_without_room_for_rounding_is_not_inductive():
    model, system = halving()
    graph = upper_bounds._Graph.of(model, np.array([True, False]), system)
    for bound, inductive in ((2.0, False), (2.0 * (1.0 + 1e-12), True)):
        found = upper_bounds._is_inductive(graph, np.array([bound, 0.0]), np.array([0]), 1)
        assert found is inductive


def test_a_bound_by_a_solution_is_only_one_that_no_sweep_raises():
    # A fair game of 3,000 states: no other way that is tried bounds its visits.
    size = 3000
    places = np.arange(1, size + 1)
    columns = np.stack([places - 1, places + 1], axis=1).ravel()
    # The last state is the end on both sides.
    columns = np.append(np.where((columns == 0) | (columns > size), size, columns - 1), size)
    offsets = np.append(2 * np.arange(size + 1), 2 * size + 1)
    halves = np.append(np.full(2 * size, 0.5), 1.0)
    model = ExplicitModel(ModelKind.DTMC, CsrMatrix(offsets, columns, halves, size + 1))
    unknown = np.arange(size + 1) < size
    system = plain_system(model, unknown, np.zeros(size + 1), np.ones(size + 1), None)
    exact = places * (size + 1.0 - places)

    def bound(solve):
        return upper_bounds.upper_bound(
            model, unknown, system, BoundMethod.DEFAULT, solve=solve
        ).values[:size]

    for solve in (None, lambda _: np.append(exact, 0.0) / 2.0, lambda _: np.append(exact, 0.0)):
        with pytest.raises(ConvergenceError, match=r"no finite upper bound of the values"):
            bound(solve)
    above = bound(lambda chain: np.append(exact * chain.offset.max(), 0.0))
    assert np.all(above >= exact)
    assert np.all(above <= exact * (1.0 + 1e-6))


@pytest.mark.parametrize("guess", [1.5, 2.5])
def test_bounds_that_move_the_wrong_way_are_not_certified(guess, monkeypatch):
    _, system = halving()
    values, reach = np.array([guess, 0.0]), np.array([1e-3, 0.0])
    monkeypatch.setattr(certified, "_solution_and_reach", lambda *_: (values, reach))
    slow = Narrowing(np.zeros(2), np.full(2, np.inf), Status.CHANGE_ONLY, 1)
    assert certified._verified(system, SolverEnvironment(), slow, 1, None) is None
    reach[0] = 0.2
    found = certified._verified(system, SolverEnvironment(), slow, 1, None)
    assert found.lower[0] <= 2.0 <= found.upper[0]


def test_components_of_one_lower_bound_have_the_greatest_upper_one(monkeypatch):
    found = Averages(np.array([0.1, 0.1]), np.array([0.2, 0.3]), np.zeros(2, bool), 0.0, [])
    for upper in (found.upper, found.upper[::-1]):
        averages = replace(found, upper=upper)
        monkeypatch.setattr(long_run, "component_averages", lambda *_, a=averages, **__: a)
        model = models.dtmc([{1: 0.5, 2: 0.5}, {1: 1.0}, {2: 1.0}])
        rewards = RewardStructure("", np.array([0.0, 1.0, 2.0]))
        result = long_run_rewards(model, rewards, SolverEnvironment(method=Method.INTERVAL))
        assert result.bounds[0][0] <= 0.1
        assert result.bounds[1][0] >= 0.3


def test_bounds_of_a_complement_allow_for_the_subtraction():
    ends = np.array([1e-17, 0.1, 0.3, 2.0 / 3.0, 0.0, 1.0])
    result = SolveResult.exact(ends, "")
    lower, upper = _complement(result, (ends, ends), SolverEnvironment()).bounds
    for low, end, up in zip(lower, ends, upper, strict=True):
        assert Fraction(float(low)) <= 1 - Fraction(float(end)) <= Fraction(float(up))
    assert lower[-2:].tolist() == upper[-2:].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("num_true", "num_paths"), [(3, 40), (150, 300), (900, 1000)])
def test_a_confidence_sequence_has_just_the_probabilities_that_the_evidence_leaves(
    num_true, num_paths
):
    num_false, confidence = num_paths - num_true, 0.05
    evidence = betaln(num_true + 0.5, num_false + 0.5) - math.log(math.pi)
    lower, upper = mixture_interval(num_true, num_paths, confidence)

    def quotient(p):
        return evidence - num_true * math.log(p) - num_false * math.log1p(-p)

    for share, inside in ((0.999, True), (1.001, False)):
        limit = -share * math.log(confidence)
        middle = num_true / num_paths
        left = brentq(lambda p, limit=limit: quotient(p) - limit, 1e-9, middle)
        right = brentq(lambda p, limit=limit: quotient(p) - limit, middle, 1.0 - 1e-9)
        assert (lower <= left) is inside
        assert (right <= upper) is inside


def test_the_better_of_two_ways_out_is_taken_where_staying_seems_best():
    # What an iteration has left makes the loop look best; the first way out is far worse.
    rows = models.csr([{1: 0.1, 2: 0.9}, {0: 1.0}, {1: 0.5, 2: 0.5}], 3)
    system = SweepSystem(
        rows,
        np.array([0.0, 1.0, 0.0]),
        states=np.array([0]),
        group_offsets=np.array([0, 3]),
        direction=models.MAX,
    )
    for left in (1e-15, 1e-13, 1e-9, 1e-5, 5e-3):
        x = np.array([0.5 * (1.0 + left), 1.0, 0.0])
        assert optimal_rows(system, x, np.array([False, True, True])).tolist() == [2]
