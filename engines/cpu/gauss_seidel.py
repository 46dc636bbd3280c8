"""Coloured Gauss-Seidel on the host's cores."""

from __future__ import annotations

import numpy as np

from engines.cpu import gauss_seidel_kernels as kernels
from engines.cpu.alternate import AlternatingSweeper
from engines.cpu.kernels import unsigned
from engines.formats.csr import FloatArray, IndexArray
from engines.linear.colours import ColouredSystem
from engines.result import SweepCost
from engines.system import Direction


class CpuColourSweeper(AlternatingSweeper[np.float64]):
    """A solve on the host, colour after colour; a `Sweeper` of renumbered states.

    Parameters
    ----------
    coloured
        What to solve.
    stop_below, absolute
        As in `engines.system.Engine.sweeper`.
    """

    def __init__(self, coloured: ColouredSystem, stop_below: float, absolute: bool) -> None:
        super().__init__(np.array(coloured.system.start, dtype=np.float64), stop_below)
        self._coloured = coloured
        self._absolute = absolute
        system = coloured.system
        offsets = system.matrix.row_offsets
        if system.group_offsets is not None:
            offsets = offsets[system.group_offsets]
        self._pieces, self._starts, threads = kernels.colour_chunks(coloured.bounds, offsets)
        self._offsets = unsigned(system.matrix.row_offsets)
        self._fresh_ends = unsigned(coloured.fresh_ends)
        self._columns = unsigned(system.matrix.columns)
        self._offset = np.empty(0) if system.offset is None else system.offset
        self.cost = SweepCost(
            "CPU", f"numba, threads {threads}", "csr by colours", system.bytes_per_sweep
        )
        # No piece, no work: this loads or compiles the kernel, which belongs to the preparation.
        nothing = np.zeros(1, dtype=np.int64)
        self._sweep(nothing, nothing, self._fresh_ends, 1.0, True)

    def _step(self) -> float:
        omega = self._coloured.system.omega
        return self._sweep(self._pieces, self._starts, self._fresh_ends, omega, self._absolute)

    def _sweep(
        self,
        pieces: IndexArray,
        starts: IndexArray,
        fresh_ends: IndexArray,
        omega: float,
        absolute: bool,
    ) -> float:
        system = self._coloured.system
        matrix = (self._offsets, fresh_ends, self._columns, system.matrix.values, self._offset)
        vectors = (self._x, self._x_new, absolute)
        if system.group_offsets is None:
            return float(kernels.sweep_rows(pieces, starts, *matrix, omega, *vectors))
        minimise = system.direction is Direction.MINIMISE
        groups = unsigned(system.group_offsets)
        return float(kernels.sweep_groups(pieces, starts, groups, *matrix, minimise, *vectors))

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        # One colour, in which nothing is fresh.
        everything = np.array([0, len(self._starts) - 1])
        return self._sweep(everything, self._starts, self._offsets[:-1], 1.0, True)

    def values(self) -> FloatArray:
        """Return the present iterate, by the states' own numbers, shape (states,)."""
        return self._coloured.in_model_order(self._x)
