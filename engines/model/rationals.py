"""Doubles as the rationals that were meant by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

LARGEST_DENOMINATOR = 100_000
"""Of a simple fraction near 1. With larger ones chance would find some, and so it would among
numbers that have fewer digits behind the point."""

ROUNDINGS = 4
"""Of a double that stands for a number, such as 1 - 2/3 for 1/3."""

DIGITS_OF_DECIMALS, DIGITS_BY_CHANCE, DIGITS_NEARBY = 15, 12, 10
"""A double is the nearest to every decimal of so many digits; by chance, hardly one is to a decimal
of no more than the second number, and hardly one within `ROUNDINGS` of one of the third."""


def rational(number: float) -> Fraction:
    """Return the rational that a double stands for: a simple number, or else the double itself.

    Parameters
    ----------
    number
        A finite number.
    """
    simple = simple_number(number)
    return Fraction(number) if simple is None else simple


@lru_cache
def simple_number(number: float) -> Fraction | None:
    """Return the simple fraction or short decimal that a double stands for; None for neither.

    It is a simple fraction if one is as near as rounding leaves it, else a short decimal if the
    double is the nearest to one, or as near to a shorter one as rounding leaves it.

    Parameters
    ----------
    number
        A finite number.
    """
    simple = _fraction(number)
    if simple is None:
        simple = _decimal(number)
    return _decimal_nearby(number) if simple is None else simple


def is_told_from(value: Fraction, bound: float, off: Fraction) -> bool:
    """Return whether a value can be compared with the number that a double stands for.

    That is so if the double is the nearest to a simple one, or the value is further off than the
    roundings of one that is not, such as 8877/247517 or 0.4999999999999999.

    Parameters
    ----------
    value
        The exact value, but for `off`.
    bound
        A finite number.
    off
        How far off the value may be, because numbers of its model stand for no simple ones.
    """
    if off > 0 and abs(value - rational(bound)) <= off:
        return False
    roundings = off + ROUNDINGS * Fraction(math.ulp(bound))
    return _stands_for_one(bound) or abs(value - Fraction(bound)) > roundings


def _stands_for_one(number: float) -> bool:
    """Return whether a double is the nearest to a number so simple that no other is meant."""
    simple = _fraction(number)
    if simple is not None and float(simple) == number:
        return True
    return _decimal(number, DIGITS_BY_CHANCE) is not None


def probabilities(numbers: Sequence[float], remainder: int | None = None) -> list[Fraction]:
    """Return the rationals that the probabilities of a row stand for; they sum to 1.

    Parameters
    ----------
    numbers
        The probabilities as doubles, which sum to 1 but for rounding.
    remainder
        Where doubles that stand for no rationals of sum 1 are taken as they are: the place of the
        probability that is what the others leave; None to divide all by their sum.
    """
    meant = [rational(number) for number in numbers]
    if sum(meant) == 1:
        return meant
    exact = [Fraction(number) for number in numbers]
    decimals = [_decimal(number) or given for number, given in zip(numbers, exact, strict=True)]
    if sum(decimals) == 1:
        return decimals
    total = sum(exact)
    if remainder is not None and total - exact[remainder] <= 1:
        exact[remainder] += 1 - total
        return exact
    return [number / total for number in exact]


def stand_for(numbers: Sequence[float], meant: Sequence[Fraction]) -> bool:
    """Return whether each rational is the simple number that a double stands for, not by chance.

    Parameters
    ----------
    numbers
        Finite ones.
    meant
        As many rationals, such as `probabilities` returns.
    """
    return all(
        number in _simple_not_by_chance(double)
        for double, number in zip(numbers, meant, strict=True)
    )


@lru_cache
def _simple_not_by_chance(number: float) -> frozenset[Fraction | None]:
    nearby = _decimal_nearby(number)
    return frozenset((_fraction(number), _decimal(number, DIGITS_BY_CHANCE), nearby)) - {None}


def _fraction(number: float) -> Fraction | None:
    """Return the simple fraction that is as near to a double as rounding leaves it."""
    exact, apart = Fraction(number), math.ulp(number)
    largest = LARGEST_DENOMINATOR * math.sqrt(min(1.0, math.ulp(1.0) / apart))
    if largest < 1.0:
        return None
    simple = exact.limit_denominator(int(largest))
    if not simple and number:
        # The least doubles are roundings away from 0, and meant all the same.
        return None
    return simple if abs(simple - exact) <= ROUNDINGS * Fraction(apart) else None


def _decimal(number: float, most_digits: int = DIGITS_OF_DECIMALS) -> Fraction | None:
    """Return the shortest decimal that rounds to a double, if it has no more digits than that."""
    text = repr(number)
    digits = text.partition("e")[0].replace(".", "").replace("-", "").strip("0")
    return Fraction(text) if len(digits) <= most_digits else None


def _decimal_nearby(number: float) -> Fraction | None:
    """Return the decimal of few digits that is as near to a double as rounding leaves it."""
    if not math.isfinite(number):
        return None
    nearby = Fraction(f"{number:.{DIGITS_NEARBY - 1}e}")
    roundings = ROUNDINGS * Fraction(math.ulp(number))
    return nearby if abs(nearby - Fraction(number)) <= roundings else None
