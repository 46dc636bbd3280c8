"""What the switch ``-const`` says: values and ranges of constants.

Source: `prism/UndefinedConstants.java` and `prism/DefinedConstant.java` of PRISM.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bridge.language.ast import Value
from bridge.language.text import double_text
from engines.errors import InvalidModelError

_INTEGER = re.compile(r"[-+]?[0-9]+")
_DOUBLE = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[fFdD]?")
_BLANKS = "".join(map(chr, range(33)))
# How much of a step the last value may lie beyond the end, for what doubles are rounded by.

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Range:
    """A value, or the values from `low` to `high` in steps, as written.

    Parameters
    ----------
    low
        The only value, or the first one.
    high
        The last one, or None.
    step
        The distance between two of them; None for 1.
    repeated
        Whether the switch gives the constant a second time, which PRISM minds if it is needed.
    """

    low: str
    high: str | None = None
    step: str | None = None
    repeated: bool = False

    def values(self, name: str, kind: str) -> Sequence[Value]:
        """Return the values, in increasing order.

        Parameters
        ----------
        name
            The constant.
        kind
            Its type: "int", "double" or "bool".

        Raises
        ------
        InvalidModelError
            With PRISM's words, for what is no value of that type, or no range.
        """
        values: Sequence[Value]
        if kind == "bool":
            values = (self._truth(name),)
        elif kind == "int":
            low, high, step = self._limits(name, _integer, "integer", str)
            values = range(low, high + 1, step)
        else:
            first, last, distance = self._limits(name, _double, "double", double_text)
            values = _steps(first, last, distance)
        if self.repeated:
            raise InvalidModelError(f'Duplicate definitions for undefined constant "{name}"')
        return values

    def _truth(self, name: str) -> bool:
        if self.high is not None:
            raise InvalidModelError("Cannot define ranges for Boolean constants")
        if self.low not in ("true", "false"):
            raise InvalidModelError(f"Value {self.low} for constant {name} is not a valid Boolean")
        return self.low == "true"

    def _limits(
        self,
        name: str,
        parse: Callable[[str], Number | None],
        what: str,
        shown: Callable[[Number], str],
    ) -> tuple[Number, Number, Number]:
        def parsed(text: str) -> Number:
            number = parse(text)
            if number is None:
                raise InvalidModelError(f"Value {text} for constant {name} is not a valid {what}")
            return number

        low = parsed(self.low)
        one = low - low + 1
        if self.high is None:
            return low, low, one
        high = parsed(self.high)
        if high < low:
            raise InvalidModelError(
                f"Low value {shown(low)} for constant {name} is higher than the high value "
                f"{shown(high)}"
            )
        if self.step is None:
            return low, high, one
        step = parsed(self.step)
        if step <= 0:
            fault = "cannot be zero" if step == 0 else "must be positive"
            raise InvalidModelError(f"Step value for constant {name} {fault}")
        if step > high - low:
            raise InvalidModelError(
                f"Step value {shown(step)} for constant {name} is bigger than the difference "
                f"between {shown(low)} and {shown(high)}"
            )
        return low, high, step


def parse_const_switch(text: str) -> dict[str, Range]:
    """Return what the argument of ``-const`` says, by the constants' names.

    Parameters
    ----------
    text
        Such as ``N=1:3,p=0.1,M=1:2:9,b=true``; the arguments of several switches are joined by
        commas.

    Raises
    ------
    InvalidModelError
        With PRISM's words, for text of another form.
    """
    ranges: dict[str, Range] = {}
    for part in text.split(","):
        if not part:
            continue
        name, _, values = part.partition("=")
        numbers = values.split(":")
        if not name or not values or not numbers[-1] or len(numbers) > 3:
            raise InvalidModelError("Invalid format in definition of undefined constants")
        found = Range(numbers[0])
        if len(numbers) > 1:
            found = Range(numbers[0], numbers[-1], numbers[1] if len(numbers) > 2 else None)
        # PRISM minds a second value where it stands.
        repeated = ranges.pop(name, None) is not None
        ranges[name] = replace(found, repeated=repeated)
    return ranges


def _integer(text: str) -> int | None:
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > len(str(2**31)):
        return None
    number = int(text)
    return number if -(2**31) <= number < 2**31 else None


def _double(text: str) -> float | None:
    """Return a finite number; a/b/c is (a/b)/c."""
    result: float | None = None
    for part in text.split("/"):
        number = part.strip(_BLANKS)
        if not _DOUBLE.fullmatch(number):
            return None
        value = float(number.rstrip("fFdD"))
        if result is None:
            result = value
        elif value == 0:
            return None
        else:
            result /= value
    return result if result is not None and math.isfinite(result) else None


def _steps(low: float, high: float, step: float) -> tuple[float, ...]:
    values = [low]
    # The last value may miss the upper bound by rounding.
    while (value := low + len(values) * step) <= high + 0.001 * step and value > values[-1]:
        values.append(value)
    return tuple(values)
