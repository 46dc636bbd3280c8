"""How far sweeps that rise from 0 still are from their limit: proven by twice as many sweeps."""

from __future__ import annotations

import math

import numpy as np

from engines.arrays import FloatArray
from engines.diagrams.system import System
from engines.host.compiled.change import largest_change
from engines.systems.one_sided import Scaling
from engines.systems.two_sided import UNIT_ROUNDOFF

ROUNDING_A_SWEEP = UNIT_ROUNDOFF
"""What a sweep leaves out of a value at most, relative to it, when it changes less than that."""


def rises_from_zero(system: System) -> bool:
    """Return whether sweeps of a system rise to its least solution, as `Doubling` requires.

    Parameters
    ----------
    system
        A system before any scaling.
    """
    if system.has_choices or system.scaling is Scaling.BALANCE:
        return False
    offset = np.zeros(1) if system.offset is None else system.offset
    first = system.start if system.states is None else system.start[system.states]
    # Jacobi and JOR make the first iterate of b even larger, and keep it where ω = 1 at most.
    below_first_iterate = not first.any() or bool(
        np.all((first == 0.0) | (first <= offset * system.omega))
    )
    return (
        0.0 < system.omega <= 1.0
        and below_first_iterate
        and all(is_nonnegative(values) for values in (system.matrix.values, offset, system.start))
    )


def is_nonnegative(values: FloatArray) -> bool:
    """Return whether all of some numbers are numbers, and none is negative."""
    # The least of numbers one of which is none is none; it takes no array of comparisons.
    return bool(values.min(initial=0.0) >= 0.0)


class Doubling:
    """The error of iterates x_k = b + A x_(k−1), from those of half as many sweeps.

    Let A and b be non-negative, X_k the iterates from 0, and x_0 between 0 and X_1, so that
    X_k ≤ x_k ≤ X_(k+1) and both rise to the least solution x. If a number of sweeps m ≥ k + 1
    raises x_k to x_n, n = k + m, by at most θ x_k in every state, then, since x_k ≤ X_m,

        x − x_k = Σ_l A^(ml) (x_n − x_k) ≤ θ Σ_l A^(ml) X_m = θ x,
        x − x_n = A^m (x − x_k) ≤ θ A^m x = θ (x − X_m) ≤ θ (x − x_k) ≤ θ² x.

    So n sweeps are right to ε as soon as the second half of them has changed no value by more than
    √ε: about when they would be right anyway. Unlike the change of a single sweep, this cannot be
    small while the sweeps still have far to go, however slowly they contract.

    Parameters
    ----------
    absolute
        Whether errors are absolute; else relative to the value.
    rounding
        What a sweep leaves out of a value at most, relative to it.
    """

    def __init__(self, absolute: bool, rounding: float = ROUNDING_A_SWEEP) -> None:
        self._absolute = absolute
        self._rounding = rounding
        self._snapshots: list[tuple[int, FloatArray]] = []
        self._spare: FloatArray | None = None
        self._scale = 1.0
        self._last = 0
        self._before = 0
        self.rise = math.inf
        """The θ of the last iterate looked at."""

    def error(self, iterations: int, values: FloatArray) -> float:
        """Return a bound of the error of an iterate, but for rounding; infinite for none.

        Parameters
        ----------
        iterations
            Sweeps made, at least as many as for any iterate that was kept.
        values
            The iterate, shape (states,).
        """
        self._last = iterations
        self._forget()
        self.rise = math.inf
        if self._snapshots and 2 * self._snapshots[0][0] < iterations:
            self._before, before = self._snapshots[0]
            with np.errstate(over="ignore"):
                self.rise = largest_change(before, values, False)
            self.rise += (iterations - self._before) * self._rounding
        if self._absolute:
            self._scale = float(np.max(values[np.isfinite(values)], initial=0.0))
        if self.rise >= 1.0:
            return math.inf
        return self._scale * self.rise**2 / (1.0 - self.rise**2)

    @property
    def scale(self) -> float:
        """What a relative error of the last iterate looked at is multiplied by."""
        return self._scale

    def is_due(self, iterations: int) -> bool:
        """Return whether an iterate is worth keeping.

        Parameters
        ----------
        iterations
            Sweeps made.
        """
        # So far apart, three or four are kept at a time.
        return not self._snapshots or iterations >= 1.4 * self._snapshots[-1][0]

    def keep(self, iterations: int, values: FloatArray) -> None:
        """Keep a copy of an iterate, to compare later ones with it.

        Parameters
        ----------
        iterations
            Sweeps made, more than at the last call.
        values
            The iterate, shape (states,).
        """
        self._last = iterations
        self._forget()
        # To write where something was written before is several times as fast.
        room = self._spare if self._spare is not None else np.empty_like(values)
        self._spare = None
        np.copyto(room, values)
        self._snapshots.append((iterations, room))

    def sweeps_to_proof(self, iterations: int, fewest: int) -> int | None:
        """Return how many sweeps more, at least so many, are twice those of a kept iterate.

        None where nothing is to be had from that.

        Parameters
        ----------
        iterations
            Sweeps made.
        fewest
            The least to return.
        """
        proofs = (2 * kept + 1 - iterations for kept, _ in self._snapshots)
        return min((sweeps for sweeps in proofs if sweeps >= fewest), default=None)

    def _forget(self) -> None:
        # Of those that are early enough, only the latest is of use, now and later.
        while len(self._snapshots) > 1 and 2 * self._snapshots[1][0] < self._last:
            self._spare = self._snapshots.pop(0)[1]

    def sweeps_to(self, epsilon: float) -> float:
        """Return how many more sweeps will bring the error down to epsilon.

        A j-th part of the sweeps that raised the iterate by θ leaves an error of θ^j.

        Parameters
        ----------
        epsilon
            As in `error`.
        """
        if self.rise >= 1.0 or epsilon <= 0.0:
            return math.inf
        wanted = min(epsilon / self._scale, 1.0) if self._scale > 0.0 else 1.0
        halves = math.log(wanted) / math.log(max(self.rise, 1e-300))
        return max(self._before * halves - self._last, 0.0)


class LateDoubling(Doubling):
    """The error of iterates that begin far on: between 0 and the iterate that sweeps from 0 reach.

    Let x_0 be at most the iterate X_(K+1), and T the sweep. If m more sweeps change x_k by at most
    θ x_k in every state, up or down, and q m ≥ K + k + 1, so that x_k ≤ X_(qm), then

        |x − x_k| ≤ Σ_l A^(ml) |T^m x_k − x_k| ≤ θ Σ_l A^(ml) X_(qm) ≤ q θ x,
        |x − x_n| = |A^m (x − x_k)| ≤ q θ x,  n = k + m,

    since X_(qm) is the sum of A^(mi) X_m over i < q, and Σ_l A^(ml) X_m = x. Where x_0 came out of
    sweeps in single precision, rounded down, the first K sweeps need not be made again.

    Parameters
    ----------
    absolute
        Whether errors are absolute; else relative to the value.
    begun
        The K sweeps that are counted before the first.
    """

    def __init__(self, absolute: bool, begun: int) -> None:
        super().__init__(absolute)
        self._begun = begun
        self._bounds: list[tuple[int, float]] = []

    def error(self, iterations: int, values: FloatArray) -> float:
        """Return a bound of the error of an iterate, but for rounding; infinite for none.

        Parameters
        ----------
        iterations
            Sweeps made, those before the first included.
        values
            The iterate, shape (states,).
        """
        bound = self.rise = math.inf
        for kept, before in self._snapshots:
            sweeps = iterations - kept
            if sweeps < 1:
                continue
            with np.errstate(over="ignore"):
                rise = largest_change(before, values, False) + sweeps * ROUNDING_A_SWEEP
            pieces = -(-(kept + 1) // sweeps)
            if pieces * rise < bound:
                bound, self.rise = pieces * rise, rise
        if self._absolute:
            self._scale = float(np.max(values[np.isfinite(values)], initial=0.0))
        bound *= self._scale
        self._bounds = [*self._bounds[-1:], (iterations, bound)]
        return bound

    def sweeps_to_proof(self, iterations: int, fewest: int) -> int | None:  # noqa: ARG002
        """Return None: any iterate may be compared with any later one."""
        return None

    def is_due(self, iterations: int) -> bool:
        """Return whether an iterate is worth keeping.

        Parameters
        ----------
        iterations
            Sweeps made, those before the first included.
        """
        last = self._snapshots[-1][0] - self._begun if self._snapshots else 0
        return iterations - self._begun >= 1.6 * last

    def keep(self, iterations: int, values: FloatArray) -> None:
        """Keep a copy of an iterate, to compare later ones with it.

        Parameters
        ----------
        iterations
            Sweeps made, those before the first included.
        values
            The iterate, shape (states,).
        """
        # Three are kept.
        self._snapshots = [*self._snapshots[-2:], (iterations, np.array(values))]

    def sweeps_to(self, epsilon: float) -> float:
        """Return how many more sweeps will bring the error down to epsilon, by the last two bounds.

        Parameters
        ----------
        epsilon
            As in `error`.
        """
        if len(self._bounds) < 2 or epsilon <= 0.0:
            return 0.0
        (before, higher), (now, lower) = self._bounds
        if lower <= epsilon:
            return 0.0
        if not np.isfinite(higher):
            return 0.0
        if lower >= higher:
            return math.inf
        return (now - before) * math.log(lower / epsilon) / math.log(higher / lower)
