"""The error of what arithmetic makes of values, against rational arithmetic."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from bridge.check.accuracy import Accuracy
from bridge.check.arithmetic import Operand

SIGNS = {
    "plus": (operator.add, np.add),
    "minus": (operator.sub, np.subtract),
    "times": (operator.mul, np.multiply),
    "divided by": (operator.truediv, np.divide),
    "max": (max, np.maximum),
    "min": (min, np.minimum),
}
STATES = 200


def numbers(random, accuracy, *, signed):
    """Return exact numbers, and doubles that differ from them as an accuracy allows."""
    values = random.random(STATES) * 10.0 ** random.integers(-3, 4) + 1e-4
    if signed:
        values *= random.choice([-1.0, 1.0], STATES)
    off = [
        Fraction(float(share)) * Fraction(float(error))
        for share, error in zip(
            random.choice([-1.0, 1.0, 0.5], STATES), accuracy.errors(values), strict=True
        )
    ]
    return [Fraction(float(v)) + o for v, o in zip(values, off, strict=True)], values


def applied(name, left, right):
    if name in ("max", "min"):
        return left.extreme(right)
    return SIGNS[name][0](left, right)


@pytest.mark.parametrize("name", SIGNS)
@pytest.mark.parametrize("signed", [False, True], ids=["positive", "signed"])
@pytest.mark.parametrize("kinds", [(True, True), (True, False), (False, True), (False, False)])
def test_the_exact_number_lies_within_the_error(name, signed, kinds):
    random = np.random.default_rng(7)
    for size in (1e-15, 1e-6, 0.2):
        accuracies = [Accuracy(size, absolute, guaranteed=True) for absolute in kinds]
        (exact, values), (exact2, values2) = (
            numbers(random, accuracy, signed=signed) for accuracy in accuracies
        )
        made = applied(
            name,
            Operand.of(values, accuracies[0], exact=False),
            Operand.of(values2, accuracies[1], exact=False),
        )
        wanted = list(map(SIGNS[name][0], exact, exact2))
        found = SIGNS[name][1](values, values2)
        accuracy = made.accuracy()
        if name == "divided by" and True in kinds:
            assert accuracy is None
            continue
        assert accuracy.guaranteed
        for value, number, error in zip(wanted, found, accuracy.errors(found), strict=True):
            assert abs(value - Fraction(float(number))) <= Fraction(float(error)) * (
                1 + Fraction(1, 2**50)
            )
        if not signed and name not in ("minus",) and kinds == (False, False):
            assert not accuracy.absolute
            assert accuracy.error < 3 * size + 1e-15 or size == 0.2


def test_what_is_not_known_stays_so():
    values = np.array([0.5, 0.25])
    known, unknown = (
        Operand.of(values, accuracy, exact=False) for accuracy in (Accuracy(1e-9), None)
    )
    for name in SIGNS:
        assert applied(name, known, unknown).accuracy() is None
        assert applied(name, unknown, known).accuracy() is None
    assert (-unknown).accuracy() is None


def test_infinite_numbers_have_no_error():
    values = np.array([0.5, math.inf])
    relative = Operand.of(values, Accuracy(1e-9, absolute=False), exact=False)
    two = Operand.of(np.full(2, 2.0), None, exact=True)
    for made in (relative + two, relative * two, relative / two):
        assert not made.accuracy().absolute
        assert 1e-9 < made.accuracy().error < 1.1e-9
    less = (relative - two).accuracy()
    assert less.absolute
    assert 0.5e-9 < less.error < 0.6e-9


@pytest.mark.parametrize("name", ["times", "divided by"])
def test_what_underflows_has_lost_its_digits(name):
    values = np.array([0.5, 0.0, 2.0])
    known = Operand.of(values, Accuracy(1e-9, absolute=False), exact=False)
    tiny, huge = (
        Operand.of(np.full(3, size), None, exact=True)
        for size in ((1e-200, 1e200) if name == "times" else (1e200, 1e-200))
    )
    small = applied(name, applied(name, known, tiny), tiny)
    lost = small.accuracy()
    assert lost is None or (lost.absolute and lost.error >= 2.0**-1074)
    large = applied(name, applied(name, known, huge), huge)
    assert large.accuracy() is None
    again = applied(name, applied(name, small, huge), huge).accuracy()
    assert again is None or (again.absolute and again.error > 1.0)


def test_integers_are_exact_and_estimates_remain_estimates():
    three = Operand.of(np.array([3, 3]), None, exact=False)
    estimate = Operand.of(np.array([0.5, 0.25]), Accuracy(1e-9, absolute=False), exact=False)
    made = (three * estimate).accuracy()
    assert (made.absolute, made.guaranteed) == (False, False)
    assert 1e-9 < made.error < 1.001e-9
    # Values without an error may be complements: those are rounded beside 1.
    exact = (three * Operand.of(np.array([1e-6, 0.5]), Accuracy(0.0), exact=False)).accuracy()
    assert exact.absolute
    assert 3e-12 < exact.error < 5e-12
