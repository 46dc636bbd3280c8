"""The error of what arithmetic makes of values.

The same rules are in prism_hooks/java/prismgpu/Operand.java.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from bridge.check.accuracy import Accuracy
from bridge.language.ast import Binary, Expression, Function, Parentheses, Unary
from bridge.model import StateVector
from engines.systems.two_sided import UNIT_ROUNDOFF
from prism_hooks.claims import ROUNDING_OF_STEPS

if TYPE_CHECKING:
    from bridge.check.checker import Checker


SMALLEST, LARGEST = 2.0**-1000, 2.0**1000
"""Numbers outside may have lost digits, or overflowed."""
TINY = 2.0**-1074
"""What a number may be off by that is too small for its digits."""
MOST_DIGITS = 15
"""Constants of more digits were computed, nobody knows how exactly."""


@dataclass(frozen=True)
class Operand:
    """Bounds of numbers, one for each state, and of their errors.

    Parameters
    ----------
    most, least
        The largest and the least of the numbers without their signs, but for infinities and 0.
    absolute
        Their largest absolute error; infinite where none is known.
    relative
        Their largest relative error; infinite where none is known.
    positive
        Whether none of them is negative.
    guaranteed
        Whether the errors are bounds; else estimates.
    """

    most: float
    least: float
    absolute: float
    relative: float
    positive: bool
    guaranteed: bool = True

    @classmethod
    def checked(
        cls,
        most: float,
        least: float,
        absolute: float,
        relative: float,
        *,
        positive: bool,
        guaranteed: bool = True,
    ) -> Operand:
        """Return numbers of whose error nothing is known where they leave the range of doubles."""
        in_range = most <= LARGEST
        relative = relative if in_range and least >= SMALLEST else math.inf
        # A relative error bounds the absolute one.
        absolute = min(_known(absolute), _known(relative * most)) if in_range else math.inf
        return cls(most, least, absolute, relative, positive, guaranteed)

    @classmethod
    def of(cls, values: StateVector, accuracy: Accuracy | None, *, exact: bool) -> Operand:
        """Return values with what is known of their error.

        Parameters
        ----------
        values
            Shape (states,): int64 or float64.
        accuracy
            That of the values; None where nothing is known.
        exact
            Whether values without an accuracy are exact but for the rounding of each.
        """
        sizes = np.abs(values[np.isfinite(values) & (values != 0)]).astype(np.float64)
        most, least = float(sizes.max(initial=0.0)), float(sizes.min(initial=math.inf))
        make = functools.partial(cls.checked, most, least, positive=bool(np.all(values >= 0)))
        if values.dtype.kind != "f":
            return make(0.0, 0.0)
        if accuracy is None:
            return make(math.inf, UNIT_ROUNDOFF if exact else math.inf)
        if accuracy.error == 0.0:
            # Rounding is small beside 1, whose complements values may be.
            return make(ROUNDING_OF_STEPS * (1.0 + most), math.inf, guaranteed=False)
        errors = (accuracy.error, math.inf) if accuracy.absolute else (math.inf, accuracy.error)
        return make(*errors, guaranteed=accuracy.guaranteed)

    def __neg__(self) -> Operand:
        return replace(self, positive=False)

    def __add__(self, other: Operand) -> Operand:
        most, positive = self.most + other.most, self.positive and other.positive
        absolute = self.absolute + other.absolute + UNIT_ROUNDOFF * most
        relative = max(self.relative, other.relative) + UNIT_ROUNDOFF if positive else math.inf
        return self._with(other, (most, min(self.least, other.least)), absolute, relative)

    def __sub__(self, other: Operand) -> Operand:
        return self + -other

    def __mul__(self, other: Operand) -> Operand:
        most = self.most * other.most
        absolute = (
            self.absolute * other.most
            + other.absolute * self.most
            + self.absolute * other.absolute
            + UNIT_ROUNDOFF * most
            + TINY
        )
        relative = self.relative + other.relative + _known(self.relative * other.relative)
        sizes = most, self.least * other.least
        return self._with(other, sizes, absolute, relative + UNIT_ROUNDOFF)

    def __truediv__(self, other: Operand) -> Operand:
        relative = math.inf
        if other.relative < 1.0:
            relative = (self.relative + other.relative) / (1.0 - other.relative) + UNIT_ROUNDOFF
        most = self.most / other.least if other.least else math.inf
        least = self.least / other.most if other.most else math.inf
        return self._with(other, (most, least), math.inf, relative)

    def extreme(self, other: Operand) -> Operand:
        """Return the least or greatest of the two in each state."""
        sizes = max(self.most, other.most), min(self.least, other.least)
        absolute = max(self.absolute, other.absolute)
        return self._with(other, sizes, absolute, max(self.relative, other.relative))

    def _with(
        self, other: Operand, sizes: tuple[float, float], absolute: float, relative: float
    ) -> Operand:
        positive, guaranteed = (
            self.positive and other.positive,
            self.guaranteed and other.guaranteed,
        )
        return Operand.checked(*sizes, absolute, relative, positive=positive, guaranteed=guaranteed)

    def accuracy(self) -> Accuracy | None:
        """Return the accuracy of the numbers; None where nothing is known."""
        absolute = not math.isfinite(self.relative)
        error = self.absolute if absolute else self.relative
        return Accuracy(error, absolute, self.guaranteed) if math.isfinite(error) else None


def _is_short(number: float) -> bool:
    """Return whether a number is a decimal of few digits."""
    return (
        math.isfinite(number)
        and len(Decimal(repr(number)).normalize().as_tuple().digits) <= MOST_DIGITS
    )


def _known(error: float) -> float:
    """Return an error; an infinite one for 0 times infinity."""
    return math.inf if math.isnan(error) else error


OPERATORS: dict[str, Callable[[Operand, Operand], Operand]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def accuracy_of_arithmetic(checker: Checker, expression: Expression) -> Accuracy | None:
    """Return the accuracy of what an expression makes of values that are solved for.

    Parameters
    ----------
    checker
        Knows the values of its operands, which have been evaluated.
    expression
        The expression, which is a number in every state.

    Returns
    -------
    Accuracy or None
        None where nothing is solved for, or nothing is known.
    """
    if not _computes(expression):
        return None
    arithmetic = _Arithmetic(checker)
    operand = arithmetic.operand(expression)
    return operand.accuracy() if arithmetic.is_solved else None


def _computes(expression: Expression) -> bool:
    """Return whether an expression is computed by the rules for operands."""
    match expression:
        case Binary(sign):
            return sign in OPERATORS
        case Unary(sign):
            return sign == "-"
        case Function(name):
            return name in ("min", "max")
        case _:
            return False


class _Arithmetic:
    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.is_solved = False

    def operand(self, expression: Expression) -> Operand:
        """Return an expression's numbers; signs may be nested on the left, however many."""
        chain: list[Binary] = []
        while isinstance(expression, Parentheses | Binary):
            if isinstance(expression, Parentheses):
                expression = expression.operand
            elif _computes(expression):
                chain.append(expression)
                expression = expression.left
            else:
                break
        made = self._first(expression)
        for part in reversed(chain):
            made = OPERATORS[part.operator](made, self.operand(part.right))
        return made

    def _first(self, expression: Expression) -> Operand:
        match expression:
            case Unary("-", operand):
                return -self.operand(operand)
            case Function("min" | "max", arguments):
                return functools.reduce(Operand.extreme, map(self.operand, arguments))
            case _:
                return self._leaf(expression)

    def _leaf(self, expression: Expression) -> Operand:
        outcome = self._checker.outcome(expression)
        self.is_solved |= outcome.accuracy is not None
        exact = self._checker.is_constant(expression) and _is_short(float(outcome.values[0]))
        return Operand.of(outcome.values, outcome.accuracy, exact=exact)
