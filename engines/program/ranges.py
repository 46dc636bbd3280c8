"""Which values an expression can take, and whether it can fail, from the variables' ranges alone.

Interval arithmetic: what it returns contains every value, and an expression that it says cannot
fail has a value in every state. So the compiled source checks for overflow only where there may be
one. Bounds of doubles are sound because rounding to nearest is monotone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from engines.program.expressions import (
    GREATEST_INT,
    LEAST_INT,
    LOGICAL,
    Binary,
    BinaryOperator,
    Call,
    Conditional,
    Expression,
    Function,
    Literal,
    Type,
    Unary,
    UnaryOperator,
    Variable,
    operands,
)
from engines.program.program import VariableDeclaration


@dataclass(frozen=True)
class Range:
    """Where a value lies.

    Parameters
    ----------
    low, high
        Bounds, which belong to it; 0 and 1 of Booleans.
    can_fail
        Whether evaluating it may be an error in some state.
    can_be_nan
        Whether a double may be not-a-number.
    """

    low: float
    high: float
    can_fail: bool = False
    can_be_nan: bool = False

    def within(self, low: float, high: float) -> bool:
        """Return whether it is a number between two bounds for certain."""
        return low <= self.low and self.high <= high and not self.can_be_nan


def range_of(expression: Expression, variables: Sequence[VariableDeclaration]) -> Range:
    """Return where the value of an expression lies.

    Parameters
    ----------
    expression
        Over the variables.
    variables
        With their ranges.
    """
    match expression:
        case Literal(value=value):
            low = float(value)
            return _unknown(False) if math.isnan(low) else Range(low, low)
        case Variable(index=index):
            return Range(float(variables[index].low), float(variables[index].high))
    parts = [range_of(part, variables) for part in operands(expression)]
    fails = any(part.can_fail for part in parts)
    if expression.type is Type.BOOL and not isinstance(expression, Conditional):
        return Range(0.0, 1.0, fails)
    match expression:
        case Unary(operator=UnaryOperator.MINUS):
            result = Range(-parts[0].high, -parts[0].low, fails, parts[0].can_be_nan)
        case Conditional():
            _, then, otherwise = parts
            nan = then.can_be_nan or otherwise.can_be_nan
            result = Range(min(then.low, otherwise.low), max(then.high, otherwise.high), fails, nan)
        case Binary(operator=operator):
            result = _of_binary(operator, parts[0], parts[1], fails)
        case Call(function=function):
            result = _of_call(function, expression.type, parts, fails)
        case _:
            result = _unknown(fails)
    return _whole(result) if expression.type is Type.INT else result


def _unknown(fails: bool) -> Range:
    return Range(-math.inf, math.inf, fails, can_be_nan=True)


def _whole(result: Range) -> Range:
    """Return the range of an integer, which fails where it leaves 32 bits."""
    if result.within(LEAST_INT, GREATEST_INT):
        return result
    low, high = max(result.low, LEAST_INT), min(result.high, GREATEST_INT)
    return Range(low, high, can_fail=True) if low <= high else Range(low, low, can_fail=True)


def _corners(operator: BinaryOperator, a: Range, b: Range) -> list[float]:
    pairs = itertools.product((a.low, a.high), (b.low, b.high))
    if operator is BinaryOperator.TIMES:
        return [x * y for x, y in pairs]
    if operator is BinaryOperator.DIVIDE:
        return [x / y for x, y in pairs]
    sign = 1.0 if operator is BinaryOperator.PLUS else -1.0
    return [x + sign * y for x, y in pairs]


def _of_binary(operator: BinaryOperator, a: Range, b: Range, fails: bool) -> Range:
    if operator in LOGICAL or a.can_be_nan or b.can_be_nan:
        return _unknown(fails)
    if operator is BinaryOperator.DIVIDE and b.low <= 0.0 <= b.high:
        return _unknown(fails)
    corners = _corners(operator, a, b)
    if not all(math.isfinite(corner) for corner in corners):
        return _unknown(fails)
    return Range(min(corners), max(corners), fails)


def _of_call(function: Function, kind: Type, parts: list[Range], fails: bool) -> Range:
    first, second = parts[0], parts[-1]
    match function:
        case Function.MIN | Function.MAX:
            pick = min if function is Function.MIN else max
            low, high = pick(part.low for part in parts), pick(part.high for part in parts)
            return Range(low, high, fails, any(part.can_be_nan for part in parts))
        case Function.FLOOR | Function.CEIL | Function.ROUND if not first.can_be_nan:
            if math.isfinite(first.low) and math.isfinite(first.high):
                return Range(math.floor(first.low), math.ceil(first.high), fails)
        case Function.MOD:
            fails = fails or second.low <= 0.0
            return Range(0.0, max(second.high - 1.0, 0.0), fails)
        case Function.POW if kind is Type.INT and first.low >= 0.0 and second.low >= 0.0:
            if second.high <= 31.0:
                low = min(first.low, 1.0) ** second.high
                return Range(low, max(first.high, 1.0) ** second.high, fails)
    return _unknown(fails or kind is Type.INT)
