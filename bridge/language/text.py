"""Values and rules as PRISM prints them; numbers have the text that Java gives them."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from bridge.language.ast import Value

Range = tuple[float, float]

RULE = "-" * 69
"""The line between the parts of a log."""


def value_text(value: Value | Range) -> str:
    """Return a result as PRISM's log shows it.

    Parameters
    ----------
    value
        A truth value, a number, or the smallest and the largest of several numbers.
    """
    if isinstance(value, tuple):
        return f"[{value_text(value[0])},{value_text(value[1])}]"
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    return double_text(float(value))


def double_text(number: float) -> str:
    """Return a double as Java's `Double.toString` does, in the fewest digits that identify it.

    Parameters
    ----------
    number
        Any double.
    """
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0.0 or 1e-3 <= abs(number) < 1e7:
        text = format(Decimal(repr(number)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{power}"


def seconds_text(seconds: float) -> str:
    """Return a duration as PRISM prints it: in seconds, to the millisecond."""
    return double_text(round(seconds, 3))
