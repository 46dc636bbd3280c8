"""Directions of iterates on the host, for GMRES over stretches of sweeps."""

from __future__ import annotations

import math

import numpy as np

from engines.arrays import FloatArray
from engines.systems.one_sided import LONGEST_BATCH, Sweeper, SweepSystem
from engines.systems.space import MOST_DIRECTIONS, PARALLEL, HasSpace, Stretched


class HostSpace:
    """See `engines.systems.space.Space`.

    Parameters
    ----------
    system
        What is swept.
    sweeper
        Sweeps of it.
    """

    def __init__(self, system: SweepSystem, sweeper: HasSpace) -> None:
        self._sweeper = sweeper
        self._where = slice(None) if system.states is None else system.states
        self._iterate = np.array(system.start, dtype=np.float64)

    def begin(self, sweeps: int) -> None:
        """Find the least iterate; see `Space.begin`."""
        first = np.array(self._sweeper.values()[self._where])
        self._changes, self._steps = (np.empty((MOST_DIRECTIONS, len(first))) for _ in range(2))
        self._weight = np.empty(len(first))
        self._lift(np.zeros(len(first)), sweeps)
        self._x = np.maximum(first, self._least)
        self._clear()

    def lengthen(self, sweeps: int) -> None:
        """Find the least iterate of longer stretches; see `Space.lengthen`."""
        self.forget()
        self._lift(self._least, sweeps)

    def forget(self) -> None:
        """Go on without directions; see `Space.forget`."""
        self._x = self._after
        self._clear()

    def _clear(self) -> None:
        self._count = 0
        self._last: tuple[FloatArray, FloatArray] | None = None

    def _lift(self, x: FloatArray, sweeps: int) -> None:
        """Make what sweeps make of x the least iterate."""
        self._least = self._swept(x, sweeps)
        self._weight[:] = 0.0
        # Of the smallest doubles it is infinite: then no combination is found.
        with np.errstate(over="ignore"):
            np.divide(1.0, self._least, out=self._weight, where=self._least > 0.0)

    def _swept(self, x: FloatArray, sweeps: int) -> FloatArray:
        """Return what sweeps make of x; the values of all states are kept beside."""
        self._iterate[self._where] = x
        self._sweeper.restart(self._iterate)
        make(self._sweeper, sweeps)
        self._everywhere = self._sweeper.values()
        return np.array(self._everywhere[self._where])

    def stretch(self, sweeps: int) -> Stretched:
        """Make a stretch of sweeps; see `Space.stretch`."""
        self._after = after = self._swept(self._x, sweeps)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # What stays as it is, infinite or not, has not changed.
            self._change = np.where(after == self._x, 0.0, after - self._x)
            if not np.isfinite(self._change).all():
                return Stretched(math.inf, math.inf, math.inf)
            # 0 / 0 is what is never reached; so is ∞ / ∞ left out.
            change = np.fmax.reduce(np.abs(self._change) / self._least, initial=0.0)
            reach = np.fmax.reduce(after / self._least, initial=0.0)
        finite = np.isfinite(self._everywhere)
        largest = np.max(self._everywhere, initial=0.0, where=finite)
        return Stretched(float(change), float(reach), float(largest))

    def combine(self) -> None:
        """Go on from the best combination; see `Space.combine`."""
        # Combinations that leave the numbers are not taken.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._x = self._combined()

    def _combined(self) -> FloatArray:
        weighted = self._change * self._weight
        if self._last is not None and self._count < MOST_DIRECTIONS:
            before, changed = self._last
            step = np.where(self._after == before, 0.0, self._after - before)
            self._add(weighted - changed, step)
        self._last = self._after, weighted
        shares = self._changes[: self._count] @ weighted
        combined = self._after - shares @ self._steps[: self._count]
        taken = np.where(np.isfinite(combined), combined, self._after)
        lifted: FloatArray = np.maximum(taken, self._least)
        return lifted

    def _add(self, change: FloatArray, step: FloatArray) -> None:
        """Make a direction orthogonal to the others, by Gram and Schmidt's method done twice."""
        count = self._count
        length = float(np.linalg.norm(change))
        for _ in range(2):
            shares = self._changes[:count] @ change
            change = change - shares @ self._changes[:count]
            step = step - shares @ self._steps[:count]
        left = float(np.linalg.norm(change))
        if math.isfinite(left) and left > PARALLEL * length:
            self._changes[count], self._steps[count] = change / left, step / left
            self._count += 1


def make(sweeper: Sweeper, sweeps: int) -> None:
    """Make so many sweeps.

    Parameters
    ----------
    sweeper
        Sweeps that do not stop by themselves.
    sweeps
        How many.
    """
    while sweeps > 0:
        sweeps -= len(sweeper.run(min(sweeps, LONGEST_BATCH)))
