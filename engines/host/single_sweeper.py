"""Sweeps in single precision on the CPU."""

from __future__ import annotations

import time

import numpy as np

from engines.arrays import FloatArray, SingleArray
from engines.host.layouts import largest_residual
from engines.host.single import HostSingleSweeps
from engines.model.result import SweepCost
from engines.systems.one_sided import SweepSystem
from engines.systems.precision import DOWN, TO_NEAREST


def narrowed(values: FloatArray, nearest: bool) -> SingleArray:
    """Return numbers in single precision, of the same shape.

    Parameters
    ----------
    values
        Doubles.
    nearest
        Whether they are rounded to nearest; else down.
    """
    with np.errstate(over="ignore", under="ignore"):
        kept = values.astype(np.float32)
    if not nearest:
        above = kept > values
        kept[above] = np.nextafter(kept[above], np.float32(-np.inf))
    return kept


class CpuSingleSweeper:
    """A solve on the host with two vectors in single precision.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    start
        The first iterate, shape (states,).
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    nearest
        Whether what is stored is rounded to nearest; else down.
    factor
        As in `engines.systems.one_sided.HasSingle.in_single`.
    """

    def __init__(
        self,
        system: SweepSystem,
        start: FloatArray,
        stop_below: float,
        absolute: bool,
        nearest: bool,
        factor: float,
    ) -> None:
        self.seconds = 0.0
        self._factor, self._system = factor, system
        self._stop_below, self._absolute = stop_below, absolute
        self._x = narrowed(factor * start, nearest)
        self._x_new = self._x.copy()
        # Matrix values and stored values are rounded, each once a sweep.
        self.rounding = 2 * (TO_NEAREST if nearest else DOWN)
        values = narrowed(system.matrix.values, nearest)
        offset = None if system.offset is None else narrowed(system.offset, nearest)
        self._sweeps = HostSingleSweeps(system, values, offset, nearest)
        saved = values.nbytes + 4 * (system.num_states + system.num_updates)
        if offset is not None:
            saved += offset.nbytes
        kernel = f"compiled, threads {self._sweeps.threads}"
        self.cost = SweepCost((), kernel, "csr", system.bytes_per_sweep - saved)

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`."""
        started = time.perf_counter()
        changes = np.empty(sweeps)
        how = (changes, self._stop_below, self._x, self._x_new, self._absolute)
        made = self._sweeps.repeat(*how)
        if made % 2:
            self._x, self._x_new = self._x_new, self._x
        self.seconds += time.perf_counter() - started
        return changes[:made]

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x, but for the rounding of A and b."""
        return largest_residual(self._system, self.values())

    def mean(self) -> FloatArray:
        """Return the mean of the last two iterates, shape (states,)."""
        both = self._x.astype(np.float64) + self._x_new.astype(np.float64)
        values: FloatArray = both / (2.0 * self._factor)
        return values

    def values(self) -> FloatArray:
        """Return the present iterate."""
        values: FloatArray = self._x.astype(np.float64) / self._factor
        return values
