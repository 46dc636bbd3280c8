"""Two-sided sweeps on the host."""

from __future__ import annotations

import time

import numpy as np

from engines.arrays import FloatArray
from engines.host.two_sided import HostTwoSidedSweeps
from engines.model.result import SweepCost
from engines.systems.two_sided import SweepRecord, TwoSidedSystem


class CpuTwoSidedSweeper:
    """A two-sided solve on the host; see `engines.systems.two_sided.TwoSidedSweeper`.

    Both iterates lie side by side, shape (states, 2), so that one look-up fetches both.
    """

    def __init__(self, system: TwoSidedSystem, stop_below: float, absolute: bool) -> None:
        self.seconds = 0.0
        self._stop_below, self._absolute = stop_below, absolute
        plain = system.system
        self._where = slice(None) if plain.states is None else plain.states
        self._x = np.array(np.column_stack((plain.start, system.upper)), np.float64, order="C")
        self._x_new = self._x.copy()
        self._sweeps = HostTwoSidedSweeps(system)
        kernel = f"compiled, threads {self._sweeps.threads}, two-sided"
        self.cost = SweepCost("CPU", kernel, "csr", plain.bytes_per_sweep)

    def run(self, sweeps: int) -> SweepRecord:
        """Make up to `sweeps` sweeps."""
        started = time.perf_counter()
        how = (sweeps, self._stop_below, self._absolute)
        record = self._sweeps.repeat(*how, self._x, self._x_new)
        if len(record.widths) % 2:
            self._x, self._x_new = self._x_new, self._x
        self.seconds += time.perf_counter() - started
        return record

    def guess_upper(self, distance: float, absolute: bool) -> None:
        """Replace the upper iterate by the lower one plus a distance."""
        lower = self._x[self._where, 0]
        self._x[self._where, 1] = lower + (distance if absolute else distance * lower)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper iterate."""
        return self._x[:, 0].copy(), self._x[:, 1].copy()
