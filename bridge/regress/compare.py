"""Comparing two engines' values of all states: how far apart they are, and how far they may be."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from bridge.regress.answers import Answer
from bridge.regress.vectors import value_of
from engines.arrays import FloatArray

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?:/\d+)?|Infinity|NaN)")


@dataclass(frozen=True)
class Tolerance:
    """How far two values may be apart on top of what their engines claim.

    Parameters
    ----------
    relative
        Share of the larger of the two.
    absolute
        The same for all values.
    """

    relative: float = 1e-6
    absolute: float = 1e-12


@dataclass(frozen=True)
class Distance:
    """How far two vectors are apart.

    Parameters
    ----------
    apart
        How many states are further apart than is allowed.
    state
        The worst state: the one that exceeds what is allowed by most; -1 when there is no state.
    first, second
        Its two values.
    absolute, relative
        The largest absolute and relative difference of any state.
    allowed
        What was allowed in the worst state.
    beyond_claims
        How many states are further apart than the tolerance and what the engines themselves claim;
        `apart` or fewer, since the claims are never less than what is allowed.
    """

    apart: int
    state: int
    first: float
    second: float
    absolute: float
    relative: float
    allowed: float
    beyond_claims: int = 0

    @property
    def agrees(self) -> bool:
        """Whether no state is further apart than is allowed."""
        return self.apart == 0

    @property
    def within_claims(self) -> bool:
        """Whether no state is further apart than the engines' own errors explain."""
        return self.beyond_claims == 0


@dataclass(frozen=True)
class Values:
    """An engine's values, in the order of states of the comparison.

    Parameters
    ----------
    values
        Shape (states,), or one value alone; truth values are 0 and 1.
    slack
        Shape of `values`: how far each may be from the truth before it is looked into.
    boolean
        Whether they are truth values.
    claimed
        Shape of `values`: how far each may be from the truth by what its engine claims, `slack` or
        more; None where that is `slack`.
    """

    values: FloatArray
    slack: FloatArray
    boolean: bool = False
    claimed: FloatArray | None = None

    @property
    def errors(self) -> FloatArray:
        """The claimed errors, shape of `values`."""
        return self.slack if self.claimed is None else self.claimed


def slack_of(
    answer: Answer, values: FloatArray, *, ours: bool, continuous_time: bool
) -> FloatArray:
    """Return how far values may be from the truth before that is looked into.

    A guaranteed bound counts in full, and so does an estimate of ours, which is made from the
    residual. One of PRISM's counts up to the convergence threshold: PRISM estimates ten times the
    last change, and an error of that size is to be found.

    Parameters
    ----------
    answer
        What the engine answered.
    values
        Its values, shape (states,).
    ours
        Whether the engine is ours.
    continuous_time
        Whether the model is a CTMC, whose time-bounded values are cut off at a share of epsilon.

    Returns
    -------
    Absolute errors, shape (states,).
    """
    return _errors_of(answer, values, in_full=ours, continuous_time=continuous_time)


def claimed_of(answer: Answer, values: FloatArray, *, continuous_time: bool) -> FloatArray:
    """Return how far values may be from the truth by their engine's own word.

    Parameters
    ----------
    answer
        What the engine answered.
    values
        Its values, shape (states,).
    continuous_time
        Whether the model is a CTMC, whose time-bounded values are cut off at a share of epsilon.

    Returns
    -------
    Absolute errors, shape (states,): what `slack_of` returns or more. An engine that claims
    nothing, as PRISM's symbolic ones of rewards, is held to its convergence threshold.
    """
    strict = _errors_of(answer, values, in_full=False, continuous_time=continuous_time)
    in_full = _errors_of(answer, values, in_full=True, continuous_time=continuous_time)
    return np.maximum(strict, in_full)


def _errors_of(
    answer: Answer, values: FloatArray, *, in_full: bool, continuous_time: bool
) -> FloatArray:
    claim = answer.claim
    if answer.boolean or claim.level == "EXACT":
        return np.zeros_like(values)
    magnitudes = np.abs(np.where(np.isfinite(values), values, 0.0))
    if claim.level == "BOUNDED":
        return np.full_like(values, claim.error) if claim.absolute else claim.error * magnitudes
    # PRISM's explicit engine gives Fox and Glynn's truncation an eighth of -epsilon as its error.
    cut = answer.epsilon / 8.0 if continuous_time else 0.0
    if claim.level == "EXACT_FLOATING_POINT":
        return np.full_like(values, cut)
    if not claim.level:
        share = np.ones_like(values) if answer.absolute else magnitudes
        return np.maximum(cut, answer.epsilon * share)
    error = claim.error if in_full else min(claim.error, answer.epsilon)
    return np.full_like(values, error) if claim.absolute else error * magnitudes


def distance(first: Values, second: Values, tolerance: Tolerance) -> Distance:
    """Compare two vectors of the same states.

    Equal infinities are equal, and so are two NaN; an infinity or a NaN and anything else are
    infinitely far apart. Truth values are equal or not.

    Parameters
    ----------
    first, second
        What is compared.
    tolerance
        What is allowed on top of the engines' claims.

    Raises
    ------
    ValueError
        When the vectors are not of one length.
    """
    a, b = first.values, second.values
    if a.shape != b.shape:
        raise ValueError(f"vectors of {a.shape[0]} and {b.shape[0]} states cannot be compared")
    if a.size == 0:
        return Distance(0, -1, math.nan, math.nan, 0.0, 0.0, 0.0)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    x, y = np.where(finite, a, 0.0), np.where(finite, b, 0.0)
    gap = np.where(same, 0.0, np.where(finite, np.abs(x - y), np.inf))
    larger = np.maximum(np.abs(x), np.abs(y))
    if first.boolean and second.boolean:
        allowed = explained = np.zeros_like(gap)
    else:
        base = tolerance.absolute + tolerance.relative * larger
        allowed = base + first.slack + second.slack
        explained = base + first.errors + second.errors
    apart = gap > allowed
    relative = np.where(gap > 0.0, gap / np.where(larger > 0.0, larger, 1.0), 0.0)
    least = np.finfo(np.float64).tiny
    excess = np.where(np.isinf(gap), np.inf, gap / np.maximum(allowed, least))
    worst = int(np.argmax(excess))
    return Distance(
        int(np.count_nonzero(apart)),
        worst,
        float(a[worst]),
        float(b[worst]),
        float(gap.max()),
        float(relative.max()),
        float(allowed[worst]),
        int(np.count_nonzero(gap > explained)),
    )


def numbers_in(text: str) -> tuple[str, FloatArray]:
    """Split a printed result, such as "[0.25,0.5]", into its words and its numbers.

    Parameters
    ----------
    text
        What PRISM prints as a result.

    Returns
    -------
    The text with "#" for each number, and the numbers, shape (numbers,).
    """
    found = _NUMBER.findall(text)
    numbers = np.array([value_of(number) for number in found], dtype=np.float64)
    return _NUMBER.sub("#", text).strip().lower(), numbers
