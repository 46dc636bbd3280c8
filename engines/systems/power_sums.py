"""Sums of powers of a matrix, times a vector: what uniformisation asks of a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray
from engines.model.progress import Measure, SweepReport
from engines.model.result import SweepCost
from engines.systems.one_sided import SweepSystem


@dataclass(frozen=True)
class PowerSum:
    """The sum Σ_k c_k P^k x, ready for an engine.

    Parameters
    ----------
    system
        Matrix: the rates off the diagonal, a row for each state that changes (`states`). Start: x.
    stay
        The diagonal of P, shape (rows,).
    rate
        The uniformisation rate q: row i of P is the rates over q, and `stay`.
    left
        First term of the window of weights.
    weights
        Shape (terms,): c_left, c_(left + 1), …; all later ones are 0.
    before
        c_k for k < left.
    steady_share, steady_change
        A sweep is steady if it changes no value by more than this share of it and this much.
    """

    system: SweepSystem
    stay: FloatArray
    rate: float
    left: int
    weights: FloatArray
    before: float
    steady_share: float = 0.0
    steady_change: float = 0.0

    @property
    def last(self) -> int:
        """The last term of the sum, and the number of sweeps that it takes."""
        return self.left + len(self.weights) - 1

    def coefficients(self, first: int, end: int) -> FloatArray:
        """Return c_first to c_(end − 1), shape (end − first,).

        Parameters
        ----------
        first, end
            At most one beyond the last term.
        """
        gap = max(0, min(end, self.left) - first)
        inside = self.weights[max(0, first - self.left) : max(0, end - self.left)]
        return np.append(np.full(gap, self.before), inside)

    def after(self, term: int) -> float:
        """Return Σ_{k > term} c_k.

        Parameters
        ----------
        term
            A term of the sum.
        """
        gap = max(0, self.left - term - 1)
        inside = self.weights[max(0, term + 1 - self.left) :]
        return gap * self.before + float(np.sum(inside))

    def report(self, told: int, done: int, seconds: float) -> SweepReport:
        """Return how far the sum is: the share still to come after each of the last sweeps.

        Parameters
        ----------
        told
            Sweeps made when the last report was made.
        done
            Sweeps made; more than that.
        seconds
            Since the first sweep began.
        """
        last = self.after(done)
        coefficients = self.coefficients(told + 2, done + 1)
        to_come = last + np.append(np.cumsum(coefficients[::-1])[::-1], 0.0)
        left = to_come / self.after(-1)
        to_go = float(self.last - done)
        return SweepReport(done, left, seconds, Measure.REMAINDER, sweeps_to_go=to_go)


@dataclass(frozen=True)
class Summed:
    """What an engine makes of a `PowerSum`.

    Parameters
    ----------
    values
        The sum, shape (rows,).
    sweeps
        Sweeps made: fewer than `PowerSum.last` where one changed nothing at all.
    steady
        The first sweep that was steady, 0 for none.
    setup_seconds, sweeping_seconds
        Seconds before the first sweep, and in sweeps.
    cost
        What a sweep moved.
    """

    values: FloatArray
    sweeps: int
    steady: int
    setup_seconds: float
    sweeping_seconds: float
    cost: SweepCost
