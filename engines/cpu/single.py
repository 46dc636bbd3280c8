"""Sweeps in single precision on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from engines.cpu.alternate import AlternatingSweeper
from engines.cpu.sparse_tools import CsrProduct
from engines.formats.csr import FloatArray, SingleArray
from engines.result import SweepCost
from engines.single import DOWN, TO_NEAREST
from engines.system import Direction, SweepSystem

LEAST_SCALE = 2.0**-100
"""As in the kernels: changes of smaller values are measured against this."""

Step = Callable[[SingleArray, SingleArray], float]


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


class CpuSingleSweeper(AlternatingSweeper[np.float32]):
    """A solve on the host with two vectors in single precision.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    start
        The first iterate, shape (states,).
    stop_below, absolute
        As in `engines.system.Engine.sweeper`.
    nearest
        Whether what is stored is rounded to nearest; else down.
    factor
        As in `engines.system.HasSingle.in_single`.
    compiled
        Whether sweeps are compiled; else NumPy makes them.
    """

    def __init__(
        self,
        system: SweepSystem,
        start: FloatArray,
        stop_below: float,
        absolute: bool,
        nearest: bool,
        factor: float,
        compiled: bool,
    ) -> None:
        super().__init__(narrowed(factor * start, nearest), stop_below)
        self._factor, self._system = factor, system
        # Matrix values and stored values are rounded, each once a sweep.
        self.rounding = 2 * (TO_NEAREST if nearest else DOWN)
        matrix, given = system.matrix, system.offset
        arrays = (
            narrowed(matrix.values, nearest),
            np.empty(0, np.float32) if given is None else narrowed(given, nearest),
        )
        make = _numba_step if compiled else _array_step
        self._one_sweep, kernel = make(system, *arrays, absolute, nearest)
        saved = sum(array.nbytes for array in arrays) + 4 * (system.num_states + system.num_updates)
        self.cost = SweepCost("CPU", kernel, "csr", system.bytes_per_sweep - saved)

    def _step(self) -> float:
        return self._one_sweep(self._x, self._x_new)

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x, but for the rounding of A and b."""
        from engines.cpu.engine import CpuSweeper

        here = replace(self._system, start=self.values())
        return CpuSweeper(here, -1.0, True).residual()

    def mean(self) -> FloatArray:
        """Return the mean of the last two iterates, shape (states,)."""
        both = self._x.astype(np.float64) + self._x_new.astype(np.float64)
        values: FloatArray = both / (2.0 * self._factor)
        return values

    def values(self) -> FloatArray:
        """Return the present iterate."""
        values: FloatArray = self._x.astype(np.float64) / self._factor
        return values


def _numba_step(
    system: SweepSystem, values: SingleArray, given: SingleArray, absolute: bool, nearest: bool
) -> tuple[Step, str]:
    from engines.cpu import kernels, single_kernels

    matrix, groups = system.matrix, system.group_offsets
    threads = kernels.use_threads(matrix.num_entries)
    offsets = matrix.row_offsets
    bounds = kernels.chunk_bounds(offsets if groups is None else offsets[groups])
    arrays: tuple[Any, ...] = (
        *(kernels.unsigned(offsets), kernels.unsigned(matrix.columns), values, given),
        np.empty(0, dtype=np.int32) if system.states is None else system.states,
    )
    kernel: Any = single_kernels.sweep_rows
    if groups is None:
        arrays = (*arrays, system.omega)
    else:
        arrays = (kernels.unsigned(groups), *arrays, system.direction is Direction.MINIMISE)
        kernel = single_kernels.sweep_groups

    def step(x: SingleArray, x_new: SingleArray) -> float:
        return float(kernel(bounds, *arrays, x, x_new, absolute, nearest))

    # No chunk, no work: this loads or compiles the kernel, which belongs to the preparation.
    nothing = np.empty(0, np.float32)
    kernel(bounds[:1], *arrays, nothing, nothing, absolute, nearest)
    return step, f"numba, threads {threads}"


def _array_step(
    system: SweepSystem, values: SingleArray, given: SingleArray, absolute: bool, nearest: bool
) -> tuple[Step, str]:
    # Sums are taken in double precision.
    array = CsrProduct(replace(system.matrix, values=values.astype(np.float64)))
    offset: Any = given.astype(np.float64) if len(given) else 0.0
    groups = None if system.group_offsets is None else system.group_offsets[:-1]
    reduce = np.minimum if system.direction is Direction.MINIMISE else np.maximum
    where: Any = slice(None) if system.states is None else system.states
    omega = system.omega

    def step(x: SingleArray, x_new: SingleArray) -> float:
        before = x.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            after = array @ before + offset
        before = before[where]
        if groups is not None:
            after = reduce.reduceat(after, groups)
        elif omega != 1.0:
            with np.errstate(over="ignore", invalid="ignore"):
                after = (1.0 - omega) * before + omega * after
        kept = narrowed(after, nearest)
        x_new[where] = kept
        with np.errstate(over="ignore", invalid="ignore"):
            change = np.abs(kept - before)
            if not absolute:
                change /= np.maximum(np.abs(before), LEAST_SCALE)
        return float(np.fmax.reduce(change, initial=0.0))

    return step, "SciPy"
