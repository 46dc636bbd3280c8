"""The CPU engine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from engines.cpu.prepare import scaled
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray
from engines.result import SweepCost
from engines.system import Direction, SweepSystem

NUMBA_ENTRIES = 100_000
"""From this many entries on, numba is faster; where it has to be started, that has to be repaid."""

NUMBA_ENTRIES_AT_START = 1_000_000
"""From this many entries on, a few dozen sweeps repay numba's start-up."""

NUMBA_SECONDS = 0.5
"""A smaller solve that has swept for so long has many sweeps left, as a rule, and numba makes them
several times faster: what is risked is its start-up, which takes as long."""

DENSE_CELLS = 1 << 16
"""Up to this many cells a dense matrix is swept as fast, and SciPy need not be imported."""

Step = Callable[[FloatArray, FloatArray, bool], float]


def repays_numba(entries: int) -> bool:
    """Return whether sweeps of a matrix should be compiled from the first one on.

    Parameters
    ----------
    entries
        Number of entries of the matrix.
    """
    started = "numba" in sys.modules
    return entries >= (NUMBA_ENTRIES if started else NUMBA_ENTRIES_AT_START)


class CpuEngine:
    """Sweeps on the host's cores."""

    name = "CPU"

    def sweeper(self, system: SweepSystem, stop_below: float, absolute: bool) -> CpuSweeper:
        """Prepare a solve; see `engines.system.Engine.sweeper`."""
        return CpuSweeper(scaled(system), stop_below, absolute)


class CpuSweeper:
    """A solve on the host: two vectors, swapped after each sweep."""

    def __init__(self, system: SweepSystem, stop_below: float, absolute: bool) -> None:
        self.seconds = 0.0
        self._stop_below = stop_below
        self._absolute = absolute
        self._x = np.array(system.start, dtype=np.float64)
        self._x_new = self._x.copy()
        self._system = system
        self._compiled = repays_numba(system.matrix.num_entries)
        self.cost = SweepCost(
            "CPU", "NumPy" if _is_dense(system) else "SciPy", "csr", system.bytes_per_sweep
        )
        if self._compiled:
            self._use_numba()
        else:
            self._step, self._plain_step = _array_steps(system)

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.system.Sweeper.run`."""
        if not self._compiled and self.seconds > NUMBA_SECONDS:
            self._use_numba()
        started = time.perf_counter()
        changes = np.empty(sweeps)
        done = 0
        while done < sweeps:
            changes[done] = self._step(self._x, self._x_new, self._absolute)
            self._x, self._x_new = self._x_new, self._x
            done += 1
            if changes[done - 1] < self._stop_below:
                break
        self.seconds += time.perf_counter() - started
        return changes[:done]

    def _use_numba(self) -> None:
        from engines.cpu import kernels

        threads = kernels.use_threads(self._system.matrix.num_entries)
        self._step, self._plain_step = _numba_steps(self._system)
        self._compiled = True
        self.cost = replace(self.cost, kernel=f"numba, threads {threads}")

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        return self._plain_step(self._x, self._x_new, True)

    def values(self) -> FloatArray:
        """Return the present iterate."""
        return self._x


def _numba_steps(system: SweepSystem) -> tuple[Step, Step]:
    from engines.cpu import kernels

    matrix = system.matrix
    rows, columns = kernels.unsigned(matrix.row_offsets), kernels.unsigned(matrix.columns)
    arrays = (rows, columns, matrix.values)
    offset = np.empty(0) if system.offset is None else system.offset
    states = np.empty(0, dtype=np.int32) if system.states is None else system.states

    nothing = np.empty(0)
    if system.group_offsets is not None:
        groups = kernels.unsigned(system.group_offsets)
        group_bounds = kernels.chunk_bounds(matrix.row_offsets[system.group_offsets])
        minimise = system.direction is Direction.MINIMISE

        def sweep_groups(
            x: FloatArray, x_new: FloatArray, absolute: bool, bounds: IndexArray = group_bounds
        ) -> float:
            arguments = (bounds, groups, *arrays, offset, states, minimise, x, x_new, absolute)
            return float(kernels.sweep_groups(*arguments))

        # No chunk, no work: this loads or compiles the kernel, which belongs to the preparation.
        sweep_groups(nothing, nothing, True, group_bounds[:1])
        return sweep_groups, sweep_groups

    row_bounds = kernels.chunk_bounds(matrix.row_offsets)

    def step_with(omega: float) -> Step:
        def sweep_rows(
            x: FloatArray, x_new: FloatArray, absolute: bool, bounds: IndexArray = row_bounds
        ) -> float:
            arguments = (bounds, *arrays, offset, states, omega, x, x_new, absolute)
            return float(kernels.sweep_rows(*arguments))

        sweep_rows(nothing, nothing, True, row_bounds[:1])
        return sweep_rows

    return step_with(system.omega), step_with(1.0)


def _is_dense(system: SweepSystem) -> bool:
    # Zeros that are multiplied must not meet an infinite reward.
    small = system.matrix.num_rows * system.num_states <= DENSE_CELLS
    return small and bool(np.isfinite(system.start).all())


def dense_array(matrix: CsrMatrix) -> Any:
    """Return a small matrix as a NumPy array, shape (rows, columns)."""
    dense = np.zeros((matrix.num_rows, matrix.num_columns))
    np.add.at(dense, (matrix.row_of_entry(), matrix.columns), matrix.values)
    return dense


def sparse_array(matrix: CsrMatrix) -> Any:
    """Return a matrix as SciPy's array of compressed rows, without a copy."""
    from scipy.sparse import csr_array

    shape = (matrix.num_rows, matrix.num_columns)
    return csr_array((matrix.values, matrix.columns, matrix.row_offsets), shape=shape)


def _array_steps(system: SweepSystem) -> tuple[Step, Step]:
    array = dense_array(system.matrix) if _is_dense(system) else sparse_array(system.matrix)
    offset = 0.0 if system.offset is None else system.offset
    groups = None if system.group_offsets is None else system.group_offsets[:-1]
    reduce = np.minimum if system.direction is Direction.MINIMISE else np.maximum
    where = slice(None) if system.states is None else system.states

    def step_with(omega: float) -> Step:
        def step(x: FloatArray, x_new: FloatArray, absolute: bool) -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                after = array @ x + offset
            if groups is not None:
                after = reduce.reduceat(after, groups)
            before = x[where]
            if omega != 1.0:
                after = (1.0 - omega) * before + omega * after
            x_new[where] = after
            return largest_change(before, after, absolute)

        return step

    return step_with(system.omega), step_with(1.0)


def largest_change(before: FloatArray, after: FloatArray, absolute: bool) -> float:
    """Return PRISM's measure of a sweep: the largest absolute or relative change.

    Parameters
    ----------
    before, after
        Values before and after the sweep, of one shape.
    absolute
        Whether the change is absolute; else it is divided by the value before, 0/0 counting as
        no change and a rise from 0 as an infinite one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.abs(after - before)
        if not absolute:
            change /= np.abs(before)
    # fmax ignores NaN, which stands for 0/0 and for ∞ − ∞.
    return float(np.fmax.reduce(change, initial=0.0))
