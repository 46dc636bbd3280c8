"""How far a computed sum of powers may be from what it stands for: a bound, rounding included."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray
from engines.proofs.poisson import FACTORIALS, PoissonWeights
from engines.systems.power_sums import PowerSum
from engines.systems.two_sided import UNIT_ROUNDOFF

LARGEST_RELATIVE = 1e-3
"""Beyond this the terms of higher order, which the bound leaves to its margin, would count."""

MARGIN = 1.01
"""More than the terms of higher order, and the mass that rounding adds to a matrix, amount to."""

ENTRY, ROW, WEIGHT = 4, 3, 32
"""Roundings beside those of a sum: of a sweep's row (the rate's own, product, division, addition),
of a diagonal entry (the rate's own, division, subtraction), and of a weight for each unit of its
exponent (the operations of the saddle-point form; of the library's functions, four units each)."""


@dataclass(frozen=True)
class SumError:
    """Bounds of the error of every value of a sum of powers.

    Parameters
    ----------
    relative
        What rounding amounts to, as a part of the value; infinite where it is not bounded.
    absolute
        What truncating the sum, and numbers too small for the format, amount to.
    """

    relative: float
    absolute: float

    @property
    def proven(self) -> bool:
        """Whether there is a bound."""
        return self.relative <= LARGEST_RELATIVE and np.isfinite(self.absolute)

    def bounds(self, values: FloatArray, greatest: float) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds of what was summed, each of the shape of `values`.

        Parameters
        ----------
        values
            The sum as computed.
        greatest
            What no exact value exceeds.
        """
        lower = np.maximum(values * (1.0 - self.relative) - self.absolute, 0.0)
        upper = np.minimum(values * (1.0 + self.relative) + self.absolute, greatest)
        # The exact value may be the greatest there is, and the computed one a little more.
        return np.minimum(lower, upper), upper


def sum_error(
    problem: PowerSum,
    poisson: PoissonWeights,
    lost: float,
    longest_exit: int,
    greatest: float,
    rate_time: float,
) -> SumError:
    """Bound the error of a sum of powers, as the engines compute it.

    Parameters
    ----------
    problem
        The sum.
    poisson
        The probabilities that its coefficients were made of.
    lost
        What its coefficients miss of all coefficients, at most.
    longest_exit
        The most rates that were added up to one exit rate.
    greatest
        What no entry of any P^k x exceeds.
    rate_time
        The mean q·t of the Poisson distribution.

    Notes
    -----
    Let u be the unit roundoff, n the entries of the longest row, and P̂ the matrix with the rates
    over q beside the diagonal, and on it the numbers 1 − exit / q as they were rounded. All is
    non-negative, so that no step cancels but this subtraction.

    1. The subtraction leaves an absolute error e ≤ (longest_exit + 3) u. In the exponent it adds a
       diagonal matrix between −e q t and e q t to Q t. The exponential of a matrix without negative
       entries beside the diagonal grows with each entry, so that Σ p_k P̂^k x lies within the
       factors exp(± e q t) of e^(Q t) x, in every state; and so do the integrals.
    2. A sweep computes each entry of P̂ x from products, sums and a quotient of non-negative
       numbers: within n + 4 roundings of its exact value, the rates' own included, in whatever
       order. After k sweeps that is a factor of 1 ± k (n + 4) u, to first order. Sweeps that are
       left out, once one has changed nothing, would have changed nothing.
    3. A weight exp(−d) / √(2πk) has a relative error of some units times 1 + d, d at most the
       logarithm of the smallest weight. The rounding of q t changes it by as many units as k is
       away from q t, which is less than there are weights.
    4. Each term adds one rounding to the sum.

    So much is relative. The coefficients outside the window, times the greatest value, are
    absolute (see `engines.questions.uniformisation`); that P̂'s rows may exceed 1 by e is in the
    margin.
    """
    terms, last = len(problem.weights), problem.last
    # Those of few events are a power over a factorial, whose error does not grow.
    saddle = poisson.weights[max(0, len(FACTORIALS) - poisson.left) :]
    smallest = float(np.min(saddle, initial=1.0))
    exponent = -np.log(smallest) if smallest > 0.0 else np.inf
    cumulative = problem.before > 0.0
    longest = int(problem.system.matrix.row_lengths().max(initial=0))
    sweeps = last * (longest + ENTRY)
    diagonal = rate_time * (longest_exit + ROW)
    # Tails of the weights are sums themselves.
    weights = WEIGHT * (1.0 + exponent) + (2 * terms if cumulative else terms)
    additions = (last if cumulative else terms) + ENTRY
    relative = MARGIN * UNIT_ROUNDOFF * (sweeps + diagonal + weights + additions)
    # Of the coefficients: 1, or the time.
    whole = rate_time / problem.rate if cumulative else 1.0
    with np.errstate(over="ignore"):
        # What products below the normal numbers lose at most.
        tiny = math.ulp(0.0) * (terms + last * (longest + ENTRY)) * (1.0 + whole)
        tiny *= max(1.0, 1.0 / problem.rate) * max(1.0, greatest)
    return SumError(float(relative), float(MARGIN * lost * greatest + tiny))
