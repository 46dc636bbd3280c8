"""Doubles as the rationals that were meant by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache


@lru_cache
def rational(number: float) -> Fraction:
    """Return the rational that a double stands for.

    It is a simple fraction if one is as near as rounding leaves it, else a short decimal if the
    double is the nearest to one, else the double itself.

    Parameters
    ----------
    number
        A finite number.
    """
    exact = Fraction(number)
    # With larger denominators chance would find some.
    simple = exact.limit_denominator(100_000)
    roundings = 4  # Of the double that stands for it, such as 1 - 2/3 for 1/3.
    if abs(simple - exact) <= roundings * Fraction(math.ulp(number)):
        return simple
    decimal = _decimal(number)
    return exact if decimal is None else decimal


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


def _decimal(number: float) -> Fraction | None:
    """Return the shortest decimal that rounds to a double, if it has at most 15 digits."""
    text = repr(number)
    digits = text.partition("e")[0].replace(".", "").replace("-", "").strip("0")
    return Fraction(text) if len(digits) <= 15 else None
