"""A solve on the host's cores of a system whose matrix stays in the hybrid representation."""

from __future__ import annotations

import time
from functools import cached_property

import numpy as np

from engines.arrays import FloatArray
from engines.host.diagram_sweeps import HostDiagramRows, HostDiagramSweeps
from engines.host.expansion.slices import SliceColours
from engines.model.choice import Format
from engines.model.result import SweepCost


class CpuDiagramSweeper:
    """A solve on the host, in colours or in none; a `Sweeper`.

    Parameters
    ----------
    rows
        The rows.
    start
        The first iterate, shape (states,).
    omega
        Relaxation.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    colours
        The colours of a sweep; None for sweeps in which no value is fresh.
    """

    def __init__(
        self,
        rows: HostDiagramRows,
        start: FloatArray,
        omega: float,
        stop_below: float,
        absolute: bool,
        colours: SliceColours | None = None,
    ) -> None:
        self.seconds = 0.0
        self._rows, self._omega = rows, omega
        self._stop_below, self._absolute = stop_below, absolute
        self._sweeps = HostDiagramSweeps(rows, colours)
        self._x = np.array(start, dtype=np.float64)
        self._x_new = self._x.copy()
        name = str(Format.HYBRID) if colours is None else f"{Format.HYBRID} by colours"
        kernel = f"compiled, threads {self._sweeps.threads}"
        self.cost = SweepCost((), kernel, name, rows.bytes_per_sweep)

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`."""
        started = time.perf_counter()
        changes = np.empty(sweeps)
        how = (self._stop_below, self._omega, self._x, self._x_new, self._absolute)
        done = self._sweeps.repeat(changes, *how)
        if done % 2:
            self._x, self._x_new = self._x_new, self._x
        self.seconds += time.perf_counter() - started
        return changes[:done]

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x for the present iterate."""
        change = np.empty(1)
        self._at_once.repeat(change, -1.0, 1.0, self._x, self._x_new, True)
        return float(change[0])

    @cached_property
    def _at_once(self) -> HostDiagramSweeps:
        return HostDiagramSweeps(self._rows)

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,)."""
        return self._x
