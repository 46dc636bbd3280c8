"""Poisson probabilities, truncated to a window whose outside is bounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray
from engines.errors import InvalidModelError

LARGEST_RATE_TIME = 1e12
"""Beyond this the window alone has some 10⁸ weights, and no one waits for so many steps."""

SMALLEST_ACCURACY = 1e-100
"""Far from underflow, with room for the weights at the edge of the window."""

PRISMS_FINEST = 1e-10
"""PRISM asks for no less of its own windows."""

FACTORIALS = np.array([math.factorial(k) for k in range(16)], dtype=np.float64)
"""Those that a double holds exactly, up to 15!, and with room to spare."""


@dataclass(frozen=True)
class PoissonWeights:
    """The probabilities of `left` to `right` events.

    Parameters
    ----------
    left, right
        The window, both ends included.
    weights
        Shape (right − left + 1,): weight k is the probability of left + k events.
    lost
        Upper bound of the probability of fewer than `left` or more than `right` events.
    """

    left: int
    weights: FloatArray
    right: int
    lost: float

    def tails(self, left: int, right: int, rate_time: float) -> PoissonWeights:
        """Return the probabilities of more than k events, for each k of a window.

        Parameters
        ----------
        left, right
            The window, both ends included.
        rate_time
            The mean number of events.

        Returns
        -------
        Such weights, summed from the right, smallest first, so that small ones are as accurate as
        large ones. What is lost, of their sum over all k, is what they miss of their own
        probabilities, and what they are beside the window, where 1 stands for them on the left and
        0 on the right.
        """
        more = np.append(np.cumsum(self.weights[:0:-1])[::-1], 0.0)
        # Fewer than are here, or more, are as good as impossible.
        before, behind = max(0, self.left - left), max(0, right - self.right)
        more = np.pad(more, (before, behind), constant_values=(1.0, 0.0))
        first = left - min(left, self.left)
        last = first + right - left + 1
        beside = float(np.sum(1.0 - more[:first]) + np.sum(more[last:]))
        # Cutting N off at the right end leaves out E[N; N > right] = λ P(N ≥ right); the part on
        # the left is that of jumps taken for certain.
        missed = (2.0 * self.lost + float(self.weights[-1])) * rate_time
        return PoissonWeights(left, more[first:last], right, beside * (1.0 + 1e-9) + missed)


def poisson_weights(rate_time: float, accuracy: float) -> PoissonWeights:
    """Return the Poisson probabilities that matter.

    Parameters
    ----------
    rate_time
        The mean number of events, q·t: from 0 to 10¹².
    accuracy
        Largest probability outside the window, between 1e-100 and 1.

    Raises
    ------
    ValueError
        For a mean that is negative or no number, or an accuracy out of range.
    InvalidModelError
        For a mean above 10¹².

    Notes
    -----
    Each weight is computed by itself, by the saddle-point form of C. Loader, *Fast and accurate
    computation of binomial probabilities* (2000), which keeps nearly all digits for any mean; a
    recurrence from the mode, as in B. Fox and P. Glynn, *Computing Poisson probabilities* (1988),
    loses one more digit for each tenfold width of the window. The window grows outwards from the
    mode until geometric series bound what is left: the ratio of successive probabilities falls
    away from the mode, so P(N > r) ≤ p(r + 1) / (1 − λ / (r + 2)), and likewise on the left.
    """
    if not (rate_time >= 0.0 and math.isfinite(rate_time)):
        raise ValueError(f"a Poisson mean must be a number of at least 0, not {rate_time}")
    if not SMALLEST_ACCURACY <= accuracy < 1.0:
        raise ValueError(f"accuracy must be from {SMALLEST_ACCURACY} to below 1, not {accuracy}")
    _require_countable(rate_time)
    if rate_time == 0.0:
        return PoissonWeights(0, np.ones(1), 0, 0.0)
    mode = math.floor(rate_time)
    share = accuracy / 2.0
    left = -_first(lambda k: _mass_left_of(-k, rate_time) <= share, -mode, 0, rate_time)
    right = _first(lambda k: _mass_right_of(k, rate_time) <= share, mode, None, rate_time)
    # One term more, and the events that are left out on the right are few in the mean as well:
    # E[N; N > right] = λ P(N ≥ right).
    return _weights_between(left, right + 1, rate_time)


def _require_countable(rate_time: float) -> None:
    if rate_time > LARGEST_RATE_TIME:
        # PRISM, which counts in 32 bits, has given up long before.
        raise InvalidModelError(
            "Overflow in Fox-Glynn computation (time bound too big?): uniformisation would take "
            f"about {rate_time:.3g} iterations (largest rate times time), and the limit is "
            f"{LARGEST_RATE_TIME:.0e}"
        )


def _weights_between(left: int, right: int, rate_time: float) -> PoissonWeights:
    weights = _probabilities(np.arange(left, right + 1, dtype=np.float64), rate_time)
    bound = 1.0
    if left <= rate_time < right + 1:
        bound = _mass_left_of(left, rate_time) + _mass_right_of(right, rate_time)
    # A bound that underflows is not 0, and its last digits are rounded.
    lost = bound * (1.0 + 1e-9) + math.ulp(0.0)
    total = float(np.sum(weights))
    # Anything else is a mistake of ours.
    if not 1.0 - lost - 1e-12 <= total <= 1.0 + 1e-12:
        raise ArithmeticError(
            f"Poisson weights for {rate_time!r} sum to {total!r}; please report this"
        )
    return PoissonWeights(left, weights, right, lost)


def prisms_weights(rate_time: float, accuracy: float) -> PoissonWeights:
    """Return the Poisson probabilities that PRISM sums.

    Parameters
    ----------
    rate_time
        The mean number of events, more than 0.
    accuracy
        What PRISM asks of the window, at least `PRISMS_FINEST`.

    Notes
    -----
    Source: `explicit.FoxGlynn` of PRISM, whose first and last terms are those of Fox and Glynn,
    *Computing Poisson probabilities* (1988), corollaries 1 and 2, with means of 400 and more; below
    that it begins with no event, and ends where the sum is large enough.

    Raises
    ------
    InvalidModelError
        As `poisson_weights`.
    """
    _require_countable(rate_time)
    share = accuracy / 2.0
    if rate_time < 400.0:
        most = math.ceil(rate_time + 40.0 * math.sqrt(rate_time) + 40.0)
        sums = np.cumsum(_probabilities(np.arange(most + 1.0), rate_time))
        return _weights_between(0, max(1, int(np.searchsorted(sums, 1.0 - share))), rate_time)
    root, mode = math.sqrt(rate_time), math.floor(rate_time)
    left, right = _reaching_left(rate_time, share), _reaching_right(rate_time, share)
    return _weights_between(
        max(0, int(mode - left * root - 1.5)),
        math.ceil(mode + right * math.sqrt(2.0) * root + 1.5),
        rate_time,
    )


def _reaching_right(rate_time: float, share: float) -> float:
    root = math.sqrt(2.0 * rate_time)
    factor = (1.0 + 1.0 / rate_time) * math.exp(0.0625) * math.sqrt(2.0)
    least, most = 1.0 / (2.0 * math.sqrt(2.0) * rate_time), math.sqrt(rate_time) / math.sqrt(8.0)
    k = least
    while k <= most:
        shrink = 1.0 - math.exp(-(2.0 / 9.0) * (k * root + 1.5))
        if factor / shrink * math.exp(-k * k / 2.0) / (k * math.sqrt(2.0 * math.pi)) <= share:
            return k
        k += 4.0 if k == least else 1.0
    return most


def _reaching_left(rate_time: float, share: float) -> float:
    factor = (1.0 + 1.0 / rate_time) * math.exp(0.125 / rate_time)
    k = 1.0 / math.sqrt(2.0 * rate_time)
    while factor * math.exp(-k * k / 2.0) / (k * math.sqrt(2.0 * math.pi)) > share:
        k += 1.0
    return k + 1.0


def _first(holds: Callable[[int], bool], start: int, end: int | None, rate_time: float) -> int:
    """Return the least k ≥ start for which a monotone condition holds, `end` at the latest."""
    step = math.isqrt(math.ceil(rate_time)) + 1
    below, k = start - 1, start
    while (end is None or k < end) and not holds(k):
        below, k, step = k, k + step, 2 * step
    if end is not None:
        k = min(k, end)
    while k - below > 1:
        middle = (below + k) // 2
        if holds(middle):
            k = middle
        else:
            below = middle
    return k


def _mass_right_of(right: int, rate_time: float) -> float:
    """Return an upper bound of P(N > right), for right ≥ the mode."""
    return _probability(right + 1, rate_time) / (1.0 - rate_time / (right + 2))


def _mass_left_of(left: int, rate_time: float) -> float:
    """Return an upper bound of P(N < left), for left ≤ the mode."""
    if left <= 0:
        return 0.0
    return _probability(left - 1, rate_time) / (1.0 - (left - 1) / rate_time)


def _probability(k: int, rate_time: float) -> float:
    return float(_probabilities(np.array([float(k)]), rate_time)[0])


def _probabilities(k: FloatArray, rate_time: float) -> FloatArray:
    """Return e^−λ λ^k / k! for ascending whole numbers k and λ = `rate_time` > 0."""
    few = int(np.searchsorted(k, len(FACTORIALS)))
    small, large = k[:few], k[few:]
    # Where λ^k / k! overflows for k < 16, e^−λ has long been 0 and so is their product.
    plain = rate_time**small / FACTORIALS[small.astype(np.int64)] * math.exp(-rate_time)
    exponent = _stirling_error(large) + _deviance(large, rate_time)
    return np.append(plain, np.exp(-exponent) / np.sqrt(2.0 * math.pi * large))


def _stirling_error(k: FloatArray) -> FloatArray:
    """Return ln k! − ln(√(2πk) (k/e)^k) for k ≥ 16, by Stirling's series."""
    inverse = 1.0 / k
    square = inverse * inverse
    series = np.full_like(k, 691.0 / 360360.0)
    for term in (1.0 / 1188.0, 1.0 / 1680.0, 1.0 / 1260.0, 1.0 / 360.0, 1.0 / 12.0):
        series = term - square * series
    return inverse * series


def _deviance(k: FloatArray, rate_time: float) -> FloatArray:
    """Return k ln(k / λ) + λ − k without cancellation for k ≥ 16 near λ."""
    difference = k - rate_time
    # With v = (k − λ) / (k + λ), ln(k / λ) = 2 (v + v³/3 + v⁵/5 + …).
    v = difference / (k + rate_time)
    near = np.abs(v) < 1.0 / 3.0
    far = ~near
    result = np.empty_like(k)
    result[far] = k[far] * np.log(k[far] / rate_time) - difference[far]
    v, square = v[near], v[near] ** 2
    series = np.zeros_like(v)
    for j in range(_terms(float(square.max(initial=0.0))), 0, -1):
        series = square * (series + 1.0 / (2 * j + 1))
    result[near] = v * (difference[near] + 2.0 * k[near] * series)
    return result


def _terms(square: float) -> int:
    """Return how many powers of v² it takes until they are below rounding."""
    return 1 if square < 1e-17 else 1 + math.ceil(math.log(1e-17) / math.log(square))
