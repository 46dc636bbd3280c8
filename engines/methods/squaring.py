"""Uniformisation of small chains over long times: the matrix of a short time, squared.

Where q·t is far larger than the number of states, Σ_k p_k P^k over a time h = t / 2^s, taken as a
dense matrix, gives e^(Q t) by s squarings (scaling and squaring; C. Moler, C. Van Loan, *Nineteen
dubious ways to compute the exponential of a matrix*, 2003), and the integral w of e^(Q u) x by
w(2h) = w(h) + e^(Q h) w(h). All terms are non-negative, so that nothing cancels: each squaring
doubles the relative error of the entries, and adds that of a sum of products. Long doubles, where
the platform has them, leave room for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.proofs.poisson import poisson_weights
from engines.proofs.uniformisation_error import ENTRY, LARGEST_RELATIVE, MARGIN, ROW, SumError
from engines.systems.one_sided import SweepSystem
from engines.systems.two_sided import UNIT_ROUNDOFF

LONG_ROUNDOFF = float(np.finfo(np.longdouble).eps) / 2.0


@dataclass(frozen=True)
class SquaredSum:
    """A sum of powers that is found by squaring.

    Parameters
    ----------
    system, rate
        The rates off the diagonal, and the uniformisation rate.
    transposed
        Whether the rates out of a state are a column of the system's matrix, not a row.
    rate_time
        The mean q·t of the Poisson distribution.
    squarings
        How often the time is halved.
    right, lost
        The last term of the sum over the short time, and the probability of more jumps.
    """

    system: SweepSystem
    transposed: bool
    rate: float
    rate_time: float
    squarings: int
    right: int
    lost: float

    @property
    def short(self) -> float:
        """The jumps to expect in the short time."""
        return math.ldexp(self.rate_time, -self.squarings)

    def is_sooner(self, sweeps: float) -> bool:
        """Return whether squaring takes fewer operations than a number of sweeps."""
        size, entries = self.system.num_states, self.system.matrix.num_entries
        entries += self.system.matrix.num_rows
        dense = self.squarings * float(size) ** 3 + self.right * float(entries) * size
        dense_cost = 16.0  # A multiplication of long doubles beside one of a sparse sweep.
        return dense_cost * dense < sweeps * entries

    def error(self, longest_exit: int, greatest: float, cumulative: bool) -> SumError:
        """Bound the error of every value; see `engines.proofs.uniformisation_error` for the terms.

        Parameters
        ----------
        longest_exit
            The most rates that were added up to one exit rate.
        greatest
            What no entry of any P^k x exceeds.
        cumulative
            Whether the integral is wanted.

        Notes
        -----
        A sweep and the addition of its term round each entry of the short time's matrix by no more
        than the entries of the longest row, and five; a weight by two for each factor, and by that
        of its exponential. A square rounds by the number of states. The sum over a time that is
        cut off misses a mass of `lost`, and each squaring doubles it.
        """
        size, doublings = self.system.num_states, 2.0**self.squarings
        longest = int(self.system.matrix.row_lengths().max(initial=0))
        short = self.right * (longest + ENTRY + 4) + self.short + 8
        squares = doublings * (short + size + 1)
        last = (self.squarings + 1) * (size + 2) + 2 * self.right
        roundings = squares + last + self.rate_time * (longest_exit + ROW)
        relative = MARGIN * (LONG_ROUNDOFF * roundings + 2.0 * UNIT_ROUNDOFF)
        whole = self.rate_time / self.rate if cumulative else 1.0
        # Of the integral over the short time, jumps left out are at most 3 times as much.
        lost = (doublings + 3.0) * self.lost * whole * greatest
        tiny = float(np.finfo(np.float64).smallest_subnormal) * doublings * size
        return SumError(float(relative), MARGIN * lost + tiny * (1.0 + whole) * (1.0 + greatest))

    def values(self, cumulative: bool) -> FloatArray:
        """Return the sum, or the integral, of each row of the system, shape (rows,).

        Parameters
        ----------
        cumulative
            Whether the integral is wanted.
        """
        step = self._step()
        start = self.system.start.astype(np.longdouble)
        weights = self._weights()
        power = np.eye(self.system.num_states, dtype=np.longdouble)
        matrix = weights[0] * power
        tails = np.cumsum(weights[::-1])[::-1]
        earned = tails[1] * start
        swept = start
        for term in range(1, self.right + 1):
            power = step @ power
            matrix += weights[term] * power
            if cumulative and term < self.right:
                swept = step @ swept
                earned = earned + tails[term + 1] * swept
        earned = earned / np.longdouble(self.rate)
        for _ in range(self.squarings):
            if cumulative:
                earned = earned + matrix @ earned
            matrix = matrix @ matrix
        whole = earned if cumulative else matrix @ start
        rows = slice(None) if self.system.states is None else self.system.states
        found: FloatArray = np.asarray(whole[rows], dtype=np.float64)
        return found

    def _weights(self) -> Any:
        mean = np.ldexp(np.longdouble(self.rate_time), -self.squarings)
        factors = mean / np.arange(1, self.right + 1, dtype=np.longdouble)
        first = np.exp(-mean)
        return np.append(first, first * np.cumprod(factors))

    def _step(self) -> Any:
        """Return P as a sparse matrix of long doubles; states without a row stay.

        Exit rates are added up again: what doubles lose of them, though a unit in the last place,
        would leave or enter the chain at each of its q·t jumps. The largest may exceed the rate by
        that much; the diagonal entry below 0 is as small.
        """
        from scipy.sparse import coo_array

        system, size = self.system, self.system.num_states
        states = np.arange(size) if system.states is None else system.states
        rates = system.matrix.values.astype(np.longdouble) / np.longdouble(self.rate)
        starts, ends = states[system.matrix.row_of_entry()], system.matrix.columns
        stay = np.ones(size, dtype=np.longdouble)
        np.subtract.at(stay, ends if self.transposed else starts, rates)
        everyone = np.arange(size)
        rows = np.concatenate([starts, everyone])
        columns = np.concatenate([ends, everyone])
        values = np.concatenate([rates, stay])
        return coo_array((values, (rows, columns)), shape=(size, size)).tocsr()


def squared_sum(
    system: SweepSystem, transposed: bool, rate: float, rate_time: float, accuracy: float
) -> SquaredSum | None:
    """Return how a sum of powers is found by squaring; None where sweeps are as soon done.

    Parameters
    ----------
    system, transposed, rate
        As in `SquaredSum`.
    rate_time
        The mean q·t of the Poisson distribution.
    accuracy
        The largest mass that may be cut off.
    """
    fewest_jumps = 50_000  # Shorter sums take a fraction of a second anyway.
    most_states = 512  # Squaring larger matrices takes longer than any sum.
    if system.num_states > most_states or rate_time < fewest_jumps:
        return None
    # So many jumps are expected in the time that is not divided further: the error of its sum,
    # doubled by each squaring, is then about that of the whole sum.
    short = 64.0
    squarings = math.ceil(math.log2(rate_time / short))
    # So many squarings alone leave no digits.
    if LONG_ROUNDOFF * rate_time > LARGEST_RELATIVE:
        return None
    poisson = poisson_weights(math.ldexp(rate_time, -squarings), math.ldexp(accuracy, -squarings))
    found = SquaredSum(system, transposed, rate, rate_time, squarings, poisson.right, poisson.lost)
    return found if found.is_sooner(rate_time) else None
