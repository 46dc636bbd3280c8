"""Doubles as the numbers that were meant by them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from engines.model.rationals import is_told_from, rational, simple_number

WRITTEN = """0 1/3 -2/7 99999/100000 0.1 1e-9 1234567.25 500000000.001 1666666674.67 10000000.1234
    1e300 4000001/3 20000000000"""


@pytest.mark.parametrize("text", WRITTEN.split())
def test_what_is_written_is_meant(text):
    number = Fraction(text)
    assert rational(float(number)) == number


def test_a_third_by_subtraction_is_a_third():
    assert rational(1.0 - 2.0 / 3.0) == Fraction(1, 3)


def test_numbers_that_stand_for_themselves_are_told_from_what_is_further_off_alone():
    bound = 8877 / 247517
    assert simple_number(bound) is None
    assert rational(bound) == Fraction(bound)
    assert not is_told_from(Fraction(8877, 247517), bound)
    assert not is_told_from(Fraction(bound), bound)
    assert is_told_from(Fraction(8877, 247518), bound)
    assert is_told_from(Fraction(1, 3), 1 / 3)


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
    assert not is_told_from(Fraction(value), bound)


@pytest.mark.parametrize("text", ["0.3", "1/3", "99999/100000", "1e-9", "500000000.001", "0"])
def test_a_bound_that_is_written_is_told_from_all_values(text):
    bound = Fraction(text)
    assert is_told_from(bound, float(bound))
