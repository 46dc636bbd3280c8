"""Confidence intervals and the quantiles that PRISM's are made of.

A confidence δ is, as in PRISM, the probability with which an interval may miss: the confidence
level is 1 − δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

LARGEST_STUDENT = 200
"""Degrees of freedom beyond which PRISM takes the normal quantile for Student's."""

_FOUND, _NARROW = 1e-8, 1e-3
"""Where the search for Student's quantile ends: error of the probability, width of the bracket."""

_OUTWARD = 1e-11
"""How far, relatively, a computed bound is moved outwards: more than its computation is off."""


def normal_quantile(probability: float) -> float:
    """Return the quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return float(ndtri(probability))


def normal_probability(value: float) -> float:
    """Return the probability that a standard normal variable is at most `value`."""
    from scipy.special import ndtr

    return float(ndtr(value))


def student_probability(value: float, freedom: int) -> float:
    """Return the probability that Student's variable with `freedom` degrees is at most `value`."""
    from scipy.special import stdtr

    return float(stdtr(freedom, value))


@lru_cache(maxsize=4096)
def student_quantile(confidence: float, freedom: int) -> float:
    """Return the t that Student's variable exceeds in absolute value with a given probability.

    The number is the one that PRISM computes with Colt 1.2: with one degree of freedom in closed
    form, from 201 on that of the normal distribution, and between by the Pegasus variant of regula
    falsi, stopped as Colt stops, which leaves a relative error of up to about 1e-5. The normal
    quantile is too small by up to 1 % of itself at 201 degrees for δ = 0.01.

    Parameters
    ----------
    confidence
        The probability δ that both tails have together.
    freedom
        Degrees of freedom, at least 1.

    Notes
    -----
    Source: M. Dowell, P. Jarratt, "The Pegasus method for computing the root of an equation",
    BIT 12, 1972; the stopping rule is a fact of `cern.jet.stat.Probability.studentTInverse`.
    """
    if freedom == 1:
        return math.tan((0.5 - confidence / 2) * math.pi)
    wanted = 1 - confidence / 2
    start = normal_quantile(wanted)
    if freedom > LARGEST_STUDENT:
        return start

    def error(t: float) -> float:
        return student_probability(t, freedom) - wanted

    older, older_error = start, error(start)
    newer = start
    while True:
        newer = newer / 2 if older_error > 0 else newer + start
        newer_error = error(newer)
        if older_error * newer_error <= 0:
            break
    while True:
        t = newer - newer_error / ((newer_error - older_error) / (newer - older))
        t_error = error(t)
        if abs(t_error) < _FOUND:
            return t
        if t_error * newer_error < 0:
            older, older_error = newer, newer_error
        else:
            older_error *= newer_error / (newer_error + t_error)
        newer, newer_error = t, t_error
        if abs(newer - older) <= _NARROW:
            return newer if abs(newer_error) <= abs(older_error) else older


def clopper_pearson(num_true: int, num_paths: int, confidence: float) -> tuple[float, float]:
    """Return an interval that covers the success probability with probability at least 1 − δ.

    The lower bound is the p for which num_true or more successes have probability δ/2, the upper
    the p for which num_true or fewer have. The tail probability is monotone in p, so each bound
    misses with probability at most δ/2 whatever the true p, for every number of paths.

    Parameters
    ----------
    num_true, num_paths
        Successes among independent trials whose number was fixed beforehand, at least 1.
    confidence
        δ, between 0 and 1.

    Notes
    -----
    Source: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in
    the case of the binomial", Biometrika 26, 1934; the quantiles are those of beta distributions.
    """
    from scipy.special import betainccinv, betaincinv

    tail = confidence / 2
    num_false = num_paths - num_true
    lower, upper = 0.0, 1.0
    if num_true > 0:
        lower = float(betaincinv(num_true, num_false + 1, tail)) * (1 - _OUTWARD)
    if num_false > 0:
        upper = min(1.0, float(betainccinv(num_true + 1, num_false, tail)) * (1 + _OUTWARD))
    return lower, upper


def clopper_pearson_paths(width: float, confidence: float) -> int:
    """Return how many paths make the half-width of every Clopper–Pearson interval ≤ `width`.

    The half-width is the longer side. It is longest at a share of successes a little below (or
    above) one half, and taken to have a single maximum there; were it not so, an interval could
    come out wider, and would still cover as it promises.

    Raises
    ------
    ValueError
        If the width is not positive, or takes 2³¹ paths or more.
    """
    if width <= 0.0:
        raise ValueError(f"the half-width {width} is not positive")

    def suffices(num_paths: int) -> bool:
        return _longest_side(num_paths, confidence) <= width

    enough = 1
    while not suffices(enough):
        enough *= 2
        if enough >= 2**31:
            raise ValueError(
                f"a half-width of {width} takes 2^31 paths or more: ask for a larger width"
            )
    least = enough // 2
    while enough - least > 1:
        middle = (least + enough) // 2
        least, enough = (least, middle) if suffices(middle) else (middle, enough)
    return enough


def _longest_side(num_paths: int, confidence: float) -> float:
    """Return the longest side of an interval for so many paths, by ternary search."""

    def side(num_true: int) -> float:
        return clopper_pearson(num_true, num_paths, confidence)[1] - num_true / num_paths

    first, last = 0, num_paths
    while last - first > 2:
        third = (last - first) // 3
        if side(first + third) < side(last - third):
            first += third
        else:
            last -= third
    return max(map(side, range(first, last + 1)))


def mixture_interval(num_true: int, num_paths: int, confidence: float) -> tuple[float, float]:
    """Return an interval of a confidence sequence for the success probability.

    With probability at least 1 − δ the intervals of *all* numbers of paths n cover p at once, so
    that one may look after every path and stop whenever one likes. Proof: with k successes among
    the first n paths, the quotient of likelihoods

        M_n = ∫ q^k (1 − q)^(n−k) Beta(½, ½)(dq) / (p^k (1 − p)^(n−k))
            = B(k + ½, n − k + ½) / (B(½, ½) p^k (1 − p)^(n−k))

    is a non-negative martingale with mean 1 when p is the true probability. By Ville's inequality
    it reaches 1/δ at any time with probability at most δ. The interval consists of the p with
    M_n < 1/δ; it is one, as the denominator has a single maximum at k / n.

    Parameters
    ----------
    num_true, num_paths
        Successes among the first so many independent trials.
    confidence
        δ, between 0 and 1.

    Notes
    -----
    Source: H. Robbins, "Statistical methods related to the law of the iterated logarithm", Annals
    of Mathematical Statistics 41, 1970; J. Ville, "Étude critique de la notion de collectif",
    1939. Beta(½, ½) is the mixture of R. Krichevsky, V. Trofimov, "The performance of universal
    encoding", IEEE Transactions on Information Theory 27, 1981.
    """
    from scipy.special import betaln

    if num_paths == 0:
        return 0.0, 1.0
    num_false = num_paths - num_true
    evidence = float(betaln(num_true + 0.5, num_false + 0.5)) - math.log(math.pi)
    limit = -math.log(confidence)

    def excluded(p: float) -> bool:
        likelihood = num_true * math.log(p) if num_true else 0.0
        likelihood += num_false * math.log1p(-p) if num_false else 0.0
        rounding = 1e-13 * (abs(evidence) + abs(likelihood) + num_paths.bit_length())
        return evidence - likelihood - rounding >= limit

    middle = num_true / num_paths
    lower = _outermost(excluded, 0.0, middle) if num_true else 0.0
    upper = _outermost(excluded, 1.0, middle) if num_false else 1.0
    return lower, upper


def _outermost(excluded: Callable[[float], bool], outside: float, inside: float) -> float:
    """Return an excluded number next to those that are not, the end `outside` if none is known."""
    for _ in range(80):
        middle = (outside + inside) / 2
        if middle in (outside, inside):
            break
        if excluded(middle):
            outside = middle
        else:
            inside = middle
    return outside


def hoeffding_paths(approximation: float, confidence: float) -> float:
    """Return the paths with which the mean of [0, 1]-valued answers is within ε but for δ.

    ⌈ln(2/δ) / (2 ε²)⌉: by Hoeffding's inequality P(|mean − p| ≥ ε) ≤ 2 exp(−2 n ε²). For ε = 0.01
    and δ = 1e-10 that is 118,595.

    Parameters
    ----------
    approximation, confidence
        ε > 0 and δ between 0 and 1.

    Returns
    -------
    float
        A whole number, or infinity.

    Notes
    -----
    Source: W. Hoeffding, "Probability inequalities for sums of bounded random variables", Journal
    of the American Statistical Association 58, 1963, theorem 2.
    """
    squared = approximation * approximation
    if squared == 0.0:
        return math.inf
    paths = 0.5 * math.log(2.0 / confidence) / squared
    return math.ceil(paths) if math.isfinite(paths) else math.inf


def hoeffding_confidence(approximation: float, num_paths: int) -> float:
    """Return the δ that so many paths leave for a given ε: 2 exp(−2 n ε²)."""
    exponent = (num_paths * approximation * approximation) * 2.0
    return 2.0 / math.exp(exponent) if exponent < 709.0 else 0.0


def hoeffding_approximation(num_paths: int, confidence: float) -> float:
    """Return the ε that so many paths leave for a given δ: √(ln(2/δ) / (2 n))."""
    return math.sqrt((0.5 * math.log(2.0 / confidence)) / num_paths)
