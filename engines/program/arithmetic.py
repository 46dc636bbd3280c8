"""The arithmetic of expressions and draws, one number at a time; the twin of `montecarlo.cuh`.

Whatever a mathematical library could round differently on another machine is computed here from
additions, multiplications and divisions of doubles alone, in one fixed order: then a path is the
same, digit for digit, in Python, on a CPU and on a GPU.

- `logarithm`: log(x) for delays, by x = 2ᵉ(1 + f), s = f/(2 + f) and the series of artanh(s) to
  s²¹; the error is below 1 unit in the last place (0.9 at the most in 10⁶ draws).
- `precise_logarithm` and `power`: the same series, and that of the exponential, on unevaluated
  sums of two doubles, with an error of some 2⁻⁶⁰ before the one rounding; a result that a double
  holds exactly, such as pow(3.0, 4) or log(8, 2), is exact.

Sources: T. J. Dekker, A floating-point technique for extending the available precision, Numerische
Mathematik 18, 1971 (sums and products of two doubles); the Java language's `Math` and PRISM's
`ExpressionFunc` (special cases, overflows).
"""

from __future__ import annotations

import math

from engines.program.expressions import is_whole

LOG_2_HIGH, LOG_2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""log 2 in two parts; the first has 32 significant bits, so that its multiples are exact."""

LOG_2, LOG_2_REST = 0.6931471805599453, 2.3190468138462996e-17
"""log 2 as an unevaluated sum of two doubles."""

LOG_TERMS = 10
PRECISE_LOG_TERMS = 14
EXP_TERMS = 19
_SPLITTER = 134217729.0  # 2^27 + 1

Pair = tuple[float, float]


class EvaluationError(ArithmeticError):
    """An expression has no value: an overflow of integers, a modulus that is not positive."""


def _reduced(x: float) -> tuple[float, int]:
    """Return m and e with x = m 2ᵉ and √½ ≤ m < √2, for a positive finite x."""
    m, e = math.frexp(x)
    return (m, e) if m >= math.sqrt(0.5) else (m * 2.0, e - 1)


def logarithm(x: float) -> float:
    """Return the natural logarithm of a positive finite number."""
    m, e = _reduced(x)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    tail = 1.0 / (2 * LOG_TERMS + 1)
    for k in range(LOG_TERMS - 1, 0, -1):
        tail = tail * z + 1.0 / (2 * k + 1)
    tail = tail * z
    return e * LOG_2_HIGH + (f - (s * (f - 2.0 * tail) - e * LOG_2_LOW))


def _two_sum(a: float, b: float) -> Pair:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _quick_sum(a: float, b: float) -> Pair:
    total = a + b
    return total, b - (total - a)


def _two_product(a: float, b: float) -> Pair:
    product = a * b
    c = _SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _add(a: Pair, b: Pair) -> Pair:
    high, low = _two_sum(a[0], b[0])
    return _quick_sum(high, low + (a[1] + b[1]))


def _multiply(a: Pair, b: Pair) -> Pair:
    high, low = _two_product(a[0], b[0])
    return _quick_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


def _divide(a: Pair, b: Pair) -> Pair:
    first = a[0] / b[0]
    product = _multiply((first, 0.0), b)
    rest = _add(a, (-product[0], -product[1]))
    return _quick_sum(first, rest[0] / b[0])


def _log_pair(x: float) -> Pair:
    m, e = _reduced(x)
    s = _divide((m - 1.0, 0.0), _two_sum(m, 1.0))
    z = _multiply(s, s)
    tail = _divide((1.0, 0.0), (2.0 * PRECISE_LOG_TERMS + 1.0, 0.0))
    for k in range(PRECISE_LOG_TERMS - 1, -1, -1):
        tail = _add(_multiply(tail, z), _divide((1.0, 0.0), (2.0 * k + 1.0, 0.0)))
    high, low = _multiply(s, tail)
    scale = _multiply((float(e), 0.0), (LOG_2, LOG_2_REST))
    return _add(scale, (2.0 * high, 2.0 * low))


def precise_logarithm(x: float) -> float:
    """Return the natural logarithm as Java does it: not a number below 0, −∞ at 0."""
    if x != x or x < 0.0:
        return math.nan
    if x == 0.0:
        return -math.inf
    if x == math.inf:
        return x
    high, low = _log_pair(x)
    return high + low


def divide(x: float, y: float) -> float:
    """Return x / y as IEEE 754 has it: infinite or not a number where y is 0."""
    if y != 0.0:
        return x / y
    if x == 0.0 or x != x:
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def logarithm_to_base(x: float, base: float) -> float:
    """Return the logarithm to a base as PRISM does: not a number for a base ≤ 0, 1 or ∞."""
    if not 0.0 < base < math.inf or base == 1.0:
        return math.nan
    return divide(precise_logarithm(x), precise_logarithm(base))


def _scaled(x: float, exponent: int) -> float:
    """Return x 2ᵏ for |k| ≤ 1100, in two steps so that neither factor is out of range."""
    half = exponent // 2
    return x * math.ldexp(1.0, half) * math.ldexp(1.0, exponent - half)


def _exponential(z: Pair) -> float:
    k = math.floor(z[0] / LOG_2 + 0.5)
    multiple = _multiply((float(k), 0.0), (LOG_2, LOG_2_REST))
    r = _add(z, (-multiple[0], -multiple[1]))
    total = (1.0, 0.0)
    for n in range(EXP_TERMS, 0, -1):
        total = _add((1.0, 0.0), _divide(_multiply(total, r), (float(n), 0.0)))
    return _scaled(total[0] + total[1], k)


def _is_odd(y: float) -> bool:
    return abs(y) < 2.0**53 and y == math.floor(y) and int(y) % 2 == 1


def power(x: float, y: float) -> float:
    """Return x to the power of y as Java does it."""
    if y == 0.0:
        return 1.0
    if x != x or y != y or (abs(x) == 1.0 and abs(y) == math.inf):
        return math.nan
    sign = -1.0 if math.copysign(1.0, x) < 0.0 and _is_odd(y) else 1.0
    x, negative = abs(x), x < 0.0
    if x == 0.0 or x == math.inf or abs(y) == math.inf:
        grows = (x > 1.0) == (y > 0.0)
        return sign * (math.inf if grows else 0.0)
    if negative and y != math.floor(y):
        return math.nan
    log = _log_pair(x)
    rough = y * log[0]
    if rough > 720.0:
        return sign * math.inf
    if rough < -760.0:
        return sign * 0.0
    return sign * _exponential(_multiply((y, 0.0), log) if rough != 0.0 else (0.0, 0.0))


def exact_int(value: int) -> int:
    """Return an integer that fits into 32 bits.

    Raises
    ------
    EvaluationError
        If it does not.
    """
    if not is_whole(value):
        raise EvaluationError("integer overflow")
    return value


def integer_power(base: int, exponent: int) -> int:
    """Return a power of integers.

    Raises
    ------
    EvaluationError
        If the exponent is negative or the power does not fit into 32 bits.
    """
    if exponent < 0:
        raise EvaluationError("Negative exponent not allowed for integer power")
    if abs(base) > 1 and exponent > 31:
        raise EvaluationError("Overflow evaluating integer power")
    return exact_int(base**exponent)


def modulo(a: int, b: int) -> int:
    """Return a mod b, which is never negative.

    Raises
    ------
    EvaluationError
        If the divisor is not positive.
    """
    if b <= 0:
        raise EvaluationError("Attempt to compute modulo with non-positive divisor")
    return a % b


def _whole(value: float, rounded: float) -> int:
    if not is_whole(rounded):
        raise EvaluationError(f"{value} cannot be losslessly converted to int")
    return int(rounded)


def floor(x: float) -> int:
    """Return ⌊x⌋; raises `EvaluationError` if that does not fit into 32 bits."""
    return _whole(x, math.floor(x) if math.isfinite(x) else x)


def ceil(x: float) -> int:
    """Return ⌈x⌉; raises `EvaluationError` if that does not fit into 32 bits."""
    return _whole(x, math.ceil(x) if math.isfinite(x) else x)


def round_half_up(x: float) -> int:
    """Return the nearest integer, halves upwards, 0 for not-a-number, as Java does.

    Raises
    ------
    EvaluationError
        If it does not fit into 32 bits.
    """
    if x != x:
        return 0
    if not math.isfinite(x):
        raise EvaluationError(f"{x} cannot be losslessly converted to int")
    below = math.floor(x)
    return _whole(x, below + 1 if x - below >= 0.5 else below)


def same_double(a: float, b: float) -> bool:
    """Return whether two doubles are equal as Java's objects: NaN is itself, 0 is not −0."""
    if a != a or b != b:
        return a != a and b != b
    return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)


def least(a: float, b: float) -> float:
    """Return the lesser of two doubles as Java does: not-a-number wins, −0 is below 0."""
    if a != a or b != b:
        return math.nan
    if a == b:
        return a if math.copysign(1.0, a) < 0.0 else b
    return a if a < b else b


def greatest(a: float, b: float) -> float:
    """Return the greater of two doubles as Java does."""
    return -least(-a, -b)
