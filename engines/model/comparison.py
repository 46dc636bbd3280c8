"""Values next to a bound, compared as the exact ones are."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.model.rationals import is_told_from, rational
from engines.model.result import ExactValues

HOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""What each relation means, of arrays too."""


def placed(value: Fraction, relation: str, bound: float, *, complement: bool = False) -> float:
    """Return a double near an exact value that is compared with a bound as that is.

    Parameters
    ----------
    value
        The exact value.
    relation
        One of < <= > >=.
    bound
        What the value is compared with; the rational that the double stands for is meant.
    complement
        Whether 1 minus the value is compared, and then rounded to another number than the bound
        even where both are equal.
    """
    target, meant = (1 - value if complement else value), rational(bound)
    number = float(value)
    if target == meant and not complement:
        return bound
    above = target > meant or (target == meant and relation in (">=", "<"))
    while True:
        compared = 1.0 - number if complement else number
        if (compared == bound and target == meant) or (compared != bound) & (
            (compared > bound) == above
        ):
            return number
        further = math.nextafter(number, math.inf if above != complement else -math.inf)
        if complement:
            # Far more small numbers are next to 0 than their complements are next to 1.
            other = 1.0 - math.nextafter(compared, math.inf if above else -math.inf)
            further = min(further, other) if above else max(further, other)
        number = further


def settle(
    values: FloatArray, errors: FloatArray, relation: str, bound: float, exactly: ExactValues
) -> tuple[FloatArray, tuple[float, ...], bool]:
    """Put exact values, as they are `placed`, where a bound lies within the error of others.

    Parameters
    ----------
    values
        What is compared, or, if these are probabilities, what 1 minus them is; shape (states,).
    errors
        Absolute ones, shape (states,).
    relation, bound
        The comparison.
    exactly
        Computes exact values.

    Returns
    -------
    All values; those of them that are exact but for their place, each once; and whether there are
    others near the bound: no exact value is known, or the bound's own digits do not tell it from
    that.
    """
    settled, exact, some_left = values.copy(), set[float](), False
    # A subtraction from 1 moves a probability by less than this.
    for at, margin in ((1.0 - bound, 2.0**-52), (bound, 0.0)):
        with np.errstate(invalid="ignore"):
            near = (errors > 0.0) & (np.abs(values - at) <= errors + margin)
        if not near.any():
            continue
        found = exactly(np.flatnonzero(near))
        if found is None:
            some_left = True
            continue
        complement = at != bound
        for state, value in zip(np.flatnonzero(near), found.values, strict=True):
            if is_told_from(1 - value if complement else value, bound, found.off):
                settled[state] = placed(value, relation, bound, complement=complement)
                exact.add(float(settled[state]))
            else:
                some_left = True
    return settled, tuple(sorted(exact)), some_left
