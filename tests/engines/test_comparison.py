"""Values next to a bound: compared as the exact ones are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from engines.model.comparison import HOLDS, placed, settle
from engines.model.explicit import ModelKind
from engines.model.rationals import rational
from engines.model.result import Exactly
from engines.proofs import exact, rational_model
from engines.systems.one_sided import Direction
from tests.engines import models

EXACT = Fraction(0)
NEAR = [Fraction(0), Fraction(1, 10**20), -Fraction(1, 10**20), Fraction(1, 10**12)]


@pytest.mark.parametrize("relation", HOLDS)
@pytest.mark.parametrize("bound", [0.5, 0.1, 0.9, 1 / 3, 0.7, 1e-9])
@pytest.mark.parametrize("complement", [False, True])
def test_what_is_placed_compares_as_the_exact_value_does(relation, bound, complement):
    for off in NEAR:
        target = rational(bound) + off
        value = 1 - target if complement else target
        number = placed(value, relation, bound, complement=complement)
        assert abs(number - float(value)) <= 2e-16
        compared = 1.0 - number if complement else number
        assert HOLDS[relation](compared, bound) == HOLDS[relation](target, rational(bound))


@pytest.mark.parametrize("relation", HOLDS)
@pytest.mark.parametrize("bound", [1.0, 1.0 - 1e-10, 0.999])
def test_the_complement_of_a_tiny_value_is_placed_at_once(relation, bound):
    for value in (Fraction(0), Fraction(1, 10**200), Fraction(1, 10**10), Fraction(1, 1000)):
        number = placed(value, relation, bound, complement=True)
        assert abs(number - float(value)) <= 2e-16
        assert HOLDS[relation](1.0 - number, bound) == HOLDS[relation](1 - value, rational(bound))


def test_only_values_whose_error_holds_the_bound_are_settled():
    asked = []

    def exactly(states):
        asked.append(states.tolist())
        return Exactly([Fraction(1, 2) for _ in states], EXACT)

    values, errors = np.array([0.5 - 1e-16, 0.4, 0.5, np.inf]), np.array([1e-15, 1e-15, 0.0, 0.0])
    settled, found, some_left = settle(values, errors, ">=", 0.5, exactly)
    assert settled.tolist() == [0.5, 0.4, 0.5, np.inf]
    assert found == (0.5,)
    assert not some_left
    assert all(states == [0] for states in asked)
    settled, _, some_left = settle(values, errors, ">=", 0.5, lambda _: None)
    assert settled is not values
    assert some_left


def test_a_value_that_the_bound_is_not_told_from_is_left_as_it_is():
    bound, exact_ones = 8877 / 247517, [Fraction(8877, 247517), 1 - Fraction(8877, 247517)]
    values, errors = np.array([bound + 1e-17, 1.0 - bound]), np.array([1e-15, 1e-15])

    def exactly(states):
        return Exactly([exact_ones[i] for i in states], EXACT)

    settled, found, some_left = settle(values, errors, "<", bound, exactly)
    assert settled.tolist() == values.tolist()
    assert found == ()
    assert some_left


def test_thirds_are_solved_exactly():
    rows = [{0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, {1: 1.0}, {2: 1.0}]
    chain = models.chain(ModelKind.DTMC, rows)
    unknown, start = np.array([True, False, False]), np.array([0.0, 1.0, 0.0])
    assert exact.reachability(chain, unknown, start)(np.array([0])) == Exactly(
        [Fraction(1, 2)], EXACT
    )
    rewards = np.array([1.0, 0.0, 0.0])
    earned = exact.reachability(chain, unknown, np.zeros(3), rewards)
    assert earned(np.array([0])) == Exactly([Fraction(3, 2)], EXACT)


def test_choices_are_made_exactly_and_no_loop_is_mistaken_for_a_way_out():
    loops = models.mdp([[{0: 1.0}, {1: 0.1, 2: 0.9}, {1: 0.7, 2: 0.3}], [{1: 1.0}], [{2: 1.0}]])
    unknown, start = np.array([True, False, False]), np.array([0.0, 1.0, 0.0])
    for direction, value in ((Direction.MINIMISE, 1), (Direction.MAXIMISE, 7)):
        found = exact.reachability(loops, unknown, start, None, direction)(np.array([0]))
        assert found == Exactly([Fraction(value, 10)], EXACT)


def test_a_long_walk_is_solved_within_what_it_may_cost():
    steps = 300
    rows = [
        {max(i - 1, 0): 0.3, i + 1: 0.7} if 0 < i < steps else {i: 1.0} for i in range(steps + 1)
    ]
    unknown, start = np.ones(steps + 1, dtype=bool), np.zeros(steps + 1)
    unknown[[0, steps]], start[steps] = False, 1.0
    walk = models.chain(ModelKind.DTMC, rows)
    ratio = Fraction(3, 7)
    found = exact.reachability(walk, unknown, start)(np.array([steps - 1]))
    assert found == Exactly([(1 - ratio ** (steps - 1)) / (1 - ratio**steps)], EXACT)
    source = rational_model.RationalModel(walk)
    choices = {state: source.choices(state)[0] for state in range(1, steps)}
    with pytest.raises(rational_model.TooLargeError):
        exact.chain_values(choices, lambda _: Fraction(0), rational_model.Budget(100.0))


@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.CTMC])
def test_long_runs_are_solved_exactly(kind):
    chain = models.chain(kind, [{1: 2 / 3, 2: 1 / 3}, {1: 0.9, 2: 0.1}, {1: 0.3, 2: 0.7}])
    labels = np.array([-1, 0, 0])
    found = exact.long_run(chain, np.array([0.0, 1.0, 0.0]), labels)(np.array([0, 2]))
    assert found == Exactly([Fraction(3, 4)] * 2, EXACT)


def test_numbers_that_stand_for_no_simple_ones_may_be_rounded():
    shares = [1 / 991, 1 / 997, 1 / 983]
    merged, others = shares[0] + shares[1] + shares[2], shares[2] + shares[0] + shares[1]
    rows = [{0: 1.0 - merged - others, 1: merged, 2: others}, {1: 1.0}, {2: 1.0}]
    chain = models.chain(ModelKind.DTMC, rows)
    unknown, start = np.array([True, False, False]), np.array([0.0, 1.0, 0.0])
    found = exact.reachability(chain, unknown, start)(np.array([0]))
    assert 0 < found.off < Fraction(1, 10**13)
    assert abs(found.values[0] - Fraction(1, 2)) <= found.off
    values, errors = np.array([float(found.values[0]), 1.0, 0.0]), np.array([1e-15, 0.0, 0.0])
    exactly = exact.reachability(chain, unknown, start)
    assert settle(values, errors, ">=", 0.5, exactly)[2]
    assert not settle(values, errors, ">=", 0.499, exactly)[2]
    active = np.array([True, False, False])
    after = exact.step_bounded(chain, active, start, 9)(np.array([0]))
    again = exact.step_bounded(chain, active, start, 9, before_that=exactly)(np.array([0]))
    assert 0 < after.off < again.off < Fraction(1, 10**13)
