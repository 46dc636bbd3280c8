"""The numbers in operators: steps, times, thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bridge.language.ast import Expression, Instantaneous, Temporal
from bridge.language.text import double_text, value_text
from engines.errors import InvalidModelError, UnsupportedError

if TYPE_CHECKING:
    from bridge.check.checker import Checker


@dataclass(frozen=True)
class StepBounds:
    """From `lower` to `upper` steps, both included; `upper` None for no limit."""

    lower: int
    upper: int | None


@dataclass(frozen=True)
class TimeBounds:
    """From `lower` to `upper` units of time; `upper` None for no limit."""

    lower: float
    upper: float | None


def require_no_lower_bound(path: Temporal) -> None:
    """Refuse a bound from below on a weak until, as PRISM does: no meaning of it is agreed on.

    Parameters
    ----------
    path
        A weak until.

    Raises
    ------
    UnsupportedError
        In PRISM's words.
    """
    if path.bound is not None and path.bound.lower is not None:
        raise UnsupportedError("The weak until operator (W) with lower bounds is not yet supported")


def step_bounds(checker: Checker, path: Temporal) -> StepBounds:
    """Return the steps that a temporal operator may take.

    Parameters
    ----------
    checker
        Knows the constants.
    path
        An operator with a bound.

    Raises
    ------
    InvalidModelError
        When a bound is no integer, is negative, or leaves no step.
    """
    bound = path.bound
    assert bound is not None
    lower = 0 if bound.lower is None else checker.steps(bound.lower, path.operator)
    upper = None if bound.upper is None else checker.steps(bound.upper, path.operator)
    lower += bound.lower is not None and bound.lower_strict
    if upper is not None:
        upper -= bound.upper_strict
    if lower < 0 or (upper is not None and upper < 0):
        raise InvalidModelError(f"Negative bound in {_until_text(path)}")
    if upper is not None and upper < lower:
        raise InvalidModelError(f"Empty bound in {_until_text(path)}")
    return StepBounds(lower, upper)


def _until_text(path: Temporal) -> str:
    """Return the until that PRISM makes of a path formula, and names in messages."""
    left, right = path.left, path.right
    match path.operator:
        case "F":
            remain, target = "true", f"{right}"
        case "G":
            remain, target = "true", f"!{right}"
        case "W":
            remain, target = f"{left}&!{right}", f"!{left}&!{right}"
        case "R":
            remain, target = f"!{left}", f"!{right}"
        case _:
            remain, target = f"{left}", f"{right}"
    return f"{remain} U{path.bound} {target}"


def time_bounds(checker: Checker, path: Temporal) -> TimeBounds:
    """Return the times between which a temporal operator must be satisfied.

    Parameters
    ----------
    checker
        Knows the constants.
    path
        An operator with a bound.

    Raises
    ------
    InvalidModelError
        When a bound is no number, is negative, or leaves no time.
    """
    bound = path.bound
    assert bound is not None
    lower = 0.0 if bound.lower is None else _moment(checker, bound.lower)
    if lower < 0:
        raise InvalidModelError(
            f"Invalid lower bound {double_text(lower)} in time-bounded until formula"
        )
    if bound.upper is None:
        return TimeBounds(lower, None)
    upper = _moment(checker, bound.upper)
    if upper < 0 or (upper == 0 and bound.upper_strict):
        relation = "<" if bound.upper_strict else "<="
        raise InvalidModelError(
            f"Invalid upper bound {relation}{double_text(upper)} in time-bounded until formula"
        )
    if upper < lower:
        raise InvalidModelError("Upper bound must exceed lower bound in time-bounded until formula")
    return TimeBounds(lower, upper)


def steps(checker: Checker, expression: Expression, strict: bool, what: object) -> int:
    """Return a number of steps.

    Parameters
    ----------
    checker
        Knows the constants.
    expression
        The bound.
    strict
        Whether the bound itself is excluded.
    what
        The formula, for the message.
    """
    operator = "I" if isinstance(what, Instantaneous) else "C"
    number = checker.steps(expression, operator) - strict
    if number < 0:
        raise InvalidModelError(_negative(number, what))
    return number


def time(checker: Checker, expression: Expression, what: object) -> float:
    """Return a time; the parameters are those of `steps`."""
    number = _moment(checker, expression)
    if number < 0:
        raise InvalidModelError(_negative(number, what))
    return number


def _negative(number: float, what: object) -> str:
    if isinstance(what, Instantaneous):
        return f"Invalid time bound {value_text(number)} in {what}: it is negative"
    return f"Invalid time bound {value_text(number)} in cumulative reward formula"


def _moment(checker: Checker, expression: Expression) -> float:
    number = checker.number(expression)
    if not math.isfinite(number):
        raise InvalidModelError(
            "Overflow in Fox-Glynn computation (time bound too big?): "
            f"{expression} is {double_text(number)}"
        )
    return number
