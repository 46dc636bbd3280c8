"""Coloured Gauss-Seidel on the CPU's cores."""

from __future__ import annotations

import time
from functools import cached_property

import numpy as np

from engines.arrays import FloatArray
from engines.host.coloured import HostColouredSweeps
from engines.host.colours import ColouredSystem
from engines.host.sweeps import HostSweeps
from engines.model.result import SweepCost


class CpuColourSweeper:
    """A solve on the CPU, colour after colour; a `Sweeper` of renumbered states.

    Parameters
    ----------
    coloured
        What to solve.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    """

    def __init__(self, coloured: ColouredSystem, stop_below: float, absolute: bool) -> None:
        self.seconds = 0.0
        self._coloured = coloured
        self._stop_below, self._absolute = stop_below, absolute
        system = coloured.system
        self._sweeps = HostColouredSweeps(system, coloured.fresh_ends, coloured.bounds)
        self._x = np.array(system.start, dtype=np.float64)
        self._x_new = self._x.copy()
        kernel = f"compiled, threads {self._sweeps.threads}"
        self.cost = SweepCost((), kernel, "csr by colours", system.bytes_per_sweep)

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`."""
        started = time.perf_counter()
        changes = np.empty(sweeps)
        vectors = (self._x, self._x_new)
        done = self._sweeps.repeat(changes, self._stop_below, *vectors, self._absolute)
        self._x, self._x_new = vectors[:: -1 if done % 2 else 1]
        self.seconds += time.perf_counter() - started
        return changes[:done]

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        change = np.empty(1)
        self._jacobi.repeat(change, -1.0, 1.0, self._x, self._x_new, True)
        return float(change[0])

    @cached_property
    def _jacobi(self) -> HostSweeps:
        return HostSweeps(self._coloured.system)

    def values(self) -> FloatArray:
        """Return the present iterate, by the states' own numbers, shape (states,)."""
        return self._coloured.in_model_order(self._x)
