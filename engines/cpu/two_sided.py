"""Two-sided sweeps on the host."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from engines.cpu import engine
from engines.cpu.engine import dense_array
from engines.cpu.sparse_tools import CsrProduct
from engines.formats.csr import FloatArray
from engines.result import SweepCost
from engines.system import Direction
from engines.two_sided import SMALLEST, SweepRecord, TwoSidedSystem, rounding_of_rows

FIELDS = len(SweepRecord._fields)

Step = Callable[[FloatArray, FloatArray, FloatArray], None]
"""From the iterates to the next ones, and one sweep's record."""


class CpuTwoSidedSweeper:
    """A two-sided solve on the host; see `engines.two_sided.TwoSidedSweeper`.

    Both iterates lie side by side, shape (states, 2), so that one look-up fetches both.
    """

    def __init__(self, system: TwoSidedSystem, stop_below: float, absolute: bool) -> None:
        self.seconds = 0.0
        self._stop_below = stop_below
        plain = system.system
        self._where = slice(None) if plain.states is None else plain.states
        self._x = np.array(np.column_stack((plain.start, system.upper)), np.float64, order="C")
        self._x_new = self._x.copy()
        kernel = "NumPy"
        if plain.matrix.num_entries >= engine.NUMBA_ENTRIES:
            self._step, kernel = _numba_step(system, absolute)
        else:
            self._step = _array_step(system, absolute)
        self.cost = SweepCost("CPU", f"{kernel}, two-sided", "csr", plain.bytes_per_sweep)

    def run(self, sweeps: int) -> SweepRecord:
        """Make up to `sweeps` sweeps."""
        started = time.perf_counter()
        record = np.zeros((sweeps, FIELDS))
        done = 0
        while done < sweeps:
            self._step(self._x, self._x_new, record[done])
            self._x, self._x_new = self._x_new, self._x
            done += 1
            if record[done - 1, 0] < self._stop_below:
                break
        self.seconds += time.perf_counter() - started
        return SweepRecord(*record[:done].T)

    def guess_upper(self, distance: float, absolute: bool) -> None:
        """Replace the upper iterate by the lower one plus a distance."""
        lower = self._x[self._where, 0]
        self._x[self._where, 1] = lower + (distance if absolute else distance * lower)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper iterate."""
        return self._x[:, 0].copy(), self._x[:, 1].copy()


def _array_step(two_sided: TwoSidedSystem, absolute: bool) -> Step:
    system = two_sided.system
    matrix = system.matrix
    small = matrix.num_rows * system.num_states <= engine.DENSE_CELLS
    array = dense_array(matrix) if small else CsrProduct(matrix)
    offset = None if system.offset is None else system.offset[:, None]
    groups = None if system.group_offsets is None else system.group_offsets[:-1]
    reduce = np.minimum if system.direction is Direction.MINIMISE else np.maximum
    where = slice(None) if system.states is None else system.states
    rounding = rounding_of_rows(matrix, two_sided.slack)[:, None] * np.array([[-1.0, 1.0]])
    widening = 1.0 + rounding
    smallest = (matrix.row_lengths()[:, None] + 1) * np.array([[-SMALLEST, SMALLEST]])

    def step(x: FloatArray, x_new: FloatArray, record: FloatArray) -> None:
        after = array @ x
        if offset is not None:
            after += offset
        after = after * widening + smallest
        if groups is not None:
            after = reduce.reduceat(after, groups)
        lower, upper = np.maximum(after[:, 0], 0.0), after[:, 1]
        before = x[where]
        low, up = before[:, 0], before[:, 1]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            record[1] = np.fmax.reduce((upper - up) / up, initial=0.0)
            record[2] = np.fmax.reduce((low - lower) / low, initial=0.0)
            if two_sided.monotonic_below:
                lower = np.maximum(lower, low)
            if two_sided.monotonic_above:
                upper = np.minimum(upper, up)
            width = upper - lower
            record[3] = -np.min(width, initial=0.0)
            np.maximum(width, 0.0, out=width)
            record[0] = np.fmax.reduce(width if absolute else width / lower, initial=0.0)
        record[4] = float((lower != low).any() or (upper != up).any())
        x_new[where, 0], x_new[where, 1] = lower, upper

    return step


def _numba_step(two_sided: TwoSidedSystem, absolute: bool) -> tuple[Step, str]:
    from engines.cpu import kernels
    from engines.cpu.two_sided_kernels import sweep_groups_two_sided

    system = two_sided.system
    matrix = system.matrix
    threads = kernels.use_threads(matrix.num_entries)
    groups = system.group_offsets
    if groups is None:
        # A row a group: the best of one choice is that choice.
        groups = np.arange(matrix.num_rows + 1, dtype=matrix.row_offsets.dtype)
    bounds = kernels.chunk_bounds(matrix.row_offsets[groups])
    arrays = (
        kernels.unsigned(groups),
        kernels.unsigned(matrix.row_offsets),
        kernels.unsigned(matrix.columns),
        matrix.values,
        np.empty(0) if system.offset is None else system.offset,
        np.empty(0, dtype=np.int32) if system.states is None else system.states,
        system.direction is Direction.MINIMISE,
        two_sided.monotonic_below,
        two_sided.monotonic_above,
        two_sided.slack,
        absolute,
    )

    def step(x: FloatArray, x_new: FloatArray, record: FloatArray) -> None:
        record[:] = sweep_groups_two_sided(bounds, *arrays, x, x_new)

    return step, f"numba, threads {threads}"
