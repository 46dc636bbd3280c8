"""PRISM's operators and functions on numbers, which are those of Java.

All work on NumPy arrays, of one value or of one a state. Where an operation can fail, it returns
where it failed, and why; the caller knows in which states the value is wanted at all.

Source: `ExpressionBinaryOp`, `ExpressionUnaryOp` and `ExpressionFunc` of PRISM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bridge.language.text import double_text
from engines.program.expressions import GREATEST_INT, LEAST_INT

Values: TypeAlias = NDArray[Any]


class Failure(NamedTuple):
    """Where an operation failed.

    Parameters
    ----------
    where
        Truth values, of the shape of the result.
    reason
        The message for the first value that is wanted, from its index.
    """

    where: Values
    reason: Callable[[int], str]


Outcome: TypeAlias = tuple[Values, Failure | None]


def as_double(values: Values) -> Values:
    """Return numbers as doubles."""
    return values.astype(np.float64)


def is_int(values: Values) -> bool:
    """Whether these are values of PRISM's type int."""
    return values.dtype.kind == "i"


def binary(operator: str, left: Values, right: Values) -> Outcome:
    """Apply + - * / ^ or a comparison.

    Parameters
    ----------
    operator
        Which one.
    left, right
        The operands: bool, int64 or float64.
    """
    if operator in ("=", "!="):
        same = _equal(left, right)
        return (same if operator == "=" else ~same), None
    if operator == "/":
        return as_double(left) / as_double(right), None
    if operator == "^":
        return power(left, right)
    if is_int(left) and is_int(right):
        outcome = _BINARY[operator](left, right)
        return _int_or_overflow(outcome) if operator in "+-*" else (outcome, None)
    return _BINARY[operator](as_double(left), as_double(right)), None


def negative(values: Values) -> Outcome:
    """Apply unary minus."""
    return _int_or_overflow(-values) if is_int(values) else (-values, None)


def power(base: Values, exponent: Values) -> Outcome:
    """Apply pow or ^; of two ints, an int."""
    if not (is_int(base) and is_int(exponent)):
        return _java_power(as_double(base), as_double(exponent)), None
    results = np.power(as_double(base), as_double(exponent))
    values, failure = _int_or_lost(results, "Overflow evaluating integer power: ")
    sign = np.broadcast_to(exponent < 0, results.shape)
    message = "Negative exponent not allowed for integer power"

    def reason(index: int) -> str:
        return message if sign.flat[index] else failure.reason(index)

    return values, Failure(sign | failure.where, reason)


def modulo(values: Values, divisors: Values) -> Outcome:
    """Apply mod, whose result is never negative."""
    message = "Attempt to compute modulo with non-positive divisor"
    failed = np.broadcast_to(divisors <= 0, np.broadcast_shapes(values.shape, divisors.shape))
    remainders = np.mod(values, np.where(divisors <= 0, 1, divisors))
    return remainders, Failure(failed, lambda _: message)


def logarithm(values: Values, bases: Values) -> Outcome:
    """Apply log: NaN for bases that make no sense."""
    values, bases = as_double(values), as_double(bases)
    bad = (bases <= 0) | (bases == 1) | ~np.isfinite(bases)
    return np.where(bad, np.nan, np.log(values) / np.log(bases)), None


def rounded(name: str, values: Values) -> Outcome:
    """Apply floor, ceil or round; the result is an int.

    Parameters
    ----------
    name
        Which one; halves are rounded up.
    values
        Numbers.
    """
    values, prefix = as_double(values), f"Error evaluating {name}:"
    if name != "round":
        return _int_or_lost((np.floor if name == "floor" else np.ceil)(values), prefix)
    down = np.floor(values)
    nearest = np.where(values - down >= 0.5, down + 1, down)
    # Java rounds to a long first: NaN to 0, and what is too large to the largest long.
    nearest = np.where(np.isnan(values), 0.0, nearest)
    failed = (nearest < LEAST_INT) | (nearest > GREATEST_INT)

    def reason(index: int) -> str:
        number = float(nearest.flat[index])
        most = 2**63 - 1
        long = int(number) if abs(number) < most else most if number > 0 else -most - 1
        return f"{prefix}{long} cannot be losslessly converted to int"

    return np.where(failed, 0.0, nearest).astype(np.int64), Failure(failed, reason)


def extreme(name: str, operands: list[Values]) -> Outcome:
    """Apply min or max to one operand or more; NaN if one is NaN, and -0.0 is below 0.0."""
    all_int = all(map(is_int, operands))
    chosen = operands[0] if all_int else as_double(operands[0])
    select = np.minimum if name == "min" else np.maximum
    for operand in operands[1:]:
        if all_int:
            chosen = select(chosen, operand)
            continue
        other = as_double(operand)
        zeros = (chosen == 0) & (other == 0)
        negative = np.signbit(chosen) | np.signbit(other)
        if name == "max":
            negative = np.signbit(chosen) & np.signbit(other)
        chosen = np.where(zeros, np.where(negative, -0.0, 0.0), select(chosen, other))
    return chosen, None


_BINARY: dict[str, Callable[[Values, Values], Values]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _equal(left: Values, right: Values) -> Values:
    if left.dtype == right.dtype and left.dtype.kind in "bi":
        return np.asarray(left == right)
    left, right = as_double(left), as_double(right)
    # As Java's Double.equals: NaN is equal to itself, and 0.0 is not equal to -0.0.
    same = (left == right) & (np.signbit(left) == np.signbit(right))
    return np.asarray(same | (np.isnan(left) & np.isnan(right)))


def _int_or_overflow(results: Values) -> Outcome:
    failed = (results < LEAST_INT) | (results > GREATEST_INT)
    return results, Failure(failed, lambda _: "integer overflow")


def _int_or_lost(results: Values, prefix: str) -> tuple[Values, Failure]:
    """Return doubles as ints, and where that cannot be."""
    fits = (results >= LEAST_INT) & (results <= GREATEST_INT) & (results == np.trunc(results))

    def reason(index: int) -> str:
        number = float(results.flat[index])
        finite = "cannot be losslessly converted to int"
        other = "is non-finite, cannot be represented by int"
        return f"{prefix}{double_text(number)} {finite if np.isfinite(number) else other}"

    return np.where(fits, results, 0.0).astype(np.int64), Failure(~fits, reason)


def _java_power(base: Values, exponent: Values) -> Values:
    """Return powers; C and Java differ where the base is 1 or -1, or the exponent NaN."""
    undefined = (np.abs(base) == 1) & np.isinf(exponent)
    return np.where(undefined | np.isnan(exponent), np.nan, np.power(base, exponent))
