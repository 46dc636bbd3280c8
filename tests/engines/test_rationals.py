"""Doubles as the numbers that were meant by them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from engines.model.rationals import (
    is_told_from,
    probabilities,
    rational,
    simple_number,
    stand_for,
)

WRITTEN = """0 1/3 -2/7 99999/100000 0.1 1e-9 1234567.25 500000000.001 1666666674.67 10000000.1234
    1e300 4000001/3 20000000000"""


@pytest.mark.parametrize("text", WRITTEN.split())
def test_what_is_written_is_meant(text):
    number = Fraction(text)
    assert rational(float(number)) == number


EXACT = Fraction(0)


def test_a_third_by_subtraction_is_a_third():
    assert rational(1.0 - 2.0 / 3.0) == Fraction(1, 3)


def test_numbers_that_stand_for_themselves_are_told_from_what_is_further_off_alone():
    bound = 8877 / 247517
    assert simple_number(bound) is None
    assert rational(bound) == Fraction(bound)
    assert not is_told_from(Fraction(8877, 247517), bound, EXACT)
    assert not is_told_from(Fraction(bound), bound, EXACT)
    assert is_told_from(Fraction(8877, 247518), bound, EXACT)
    assert is_told_from(Fraction(1, 3), 1 / 3, EXACT)


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        ("1/2", 0.4999999999999999),
        ("1", 0.9999999999999998),
        ("1/3", 1.0 - 2.0 / 3.0),
        # The nearest double has a decimal of 15 digits, by chance or not.
        ("84000/973561", 84000 / 973561),
        ("1133/120", 9.44166666666667),
    ],
)
def test_a_bound_next_to_a_simple_number_is_not_told_from_it(value, bound):
    assert not is_told_from(Fraction(value), bound, EXACT)


@pytest.mark.parametrize("text", ["0.3", "1/3", "99999/100000", "1e-9", "500000000.001", "0"])
def test_a_bound_that_is_written_is_told_from_all_values(text):
    bound = Fraction(text)
    assert is_told_from(bound, float(bound), EXACT)


def test_what_is_off_is_told_from_what_is_further_away_alone():
    off = Fraction(1, 10**12)
    assert not is_told_from(Fraction(3, 10) + off, 0.3, off)
    assert not is_told_from(Fraction(3, 10), 0.3, off)
    assert is_told_from(Fraction(3, 10) + 2 * off, 0.3, off)


@pytest.mark.parametrize("text", ["0.970299", "0.25382088", "705.2451404", "1e-300"])
def test_a_double_that_roundings_have_moved_stands_for_the_decimal(text):
    moved = float(text)
    for _ in range(3):
        moved = math.nextafter(moved, 0.0)
        assert rational(moved) == Fraction(text)
    for _ in range(3):
        moved = math.nextafter(moved, 0.0)
    assert rational(moved) != Fraction(text)


def test_the_least_doubles_are_not_0():
    assert rational(1.5e-323) == Fraction("1.5e-323")
    assert is_told_from(Fraction(0), 1.5e-323, EXACT)
    assert rational(0.0) == 0


def test_probabilities_stand_for_their_doubles_or_do_not():
    assert stand_for([1 / 3, 2 / 3], probabilities([1 / 3, 2 / 3]))
    # The nearest to a decimal of 15 digits, by chance.
    by_chance = 0.604892 / 24.5
    assert simple_number(by_chance) is not None
    assert not stand_for([by_chance], [rational(by_chance)])
    moved = 1 / 991 + 1 / 997 + 1 / 983
    numbers = [moved, 1.0 - moved]
    assert not stand_for(numbers, probabilities(numbers))
