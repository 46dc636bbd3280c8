"""Sweeps on one GPU, in double and in single precision."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.cuda.comparing import comparison
from engines.cuda.driver import cupy
from engines.cuda.formats.tuning import RowTuning
from engines.cuda.modules import stream
from engines.cuda.prepare import narrowed
from engines.cuda.queued import HISTORY, STRETCH, QueuedSweeps
from engines.cuda.rows import OWN_VALUES, DeviceRows, Test
from engines.cuda.space import DeviceSpace, bytes_needed
from engines.cuda.transfer import send, to_device, to_host
from engines.diagrams.system import System
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.host.space import HostSpace
from engines.model.choice import Format
from engines.model.events import Kind
from engines.model.result import SweepCost
from engines.systems.one_sided import Scaling, SingleSweeper, SweepSystem
from engines.systems.precision import DOWN, TO_NEAREST
from engines.systems.space import Space

LONG_SWEEP_BYTES = 50_000_000
"""From here on a sweep is longer than the look at its predecessor's change, and looks first."""


def device_bytes(system: SweepSystem) -> int:
    """Return the bytes that a solve takes on the device, the peak of its preparation included."""
    turned = 2 if system.scaling is Scaling.BALANCE else 1
    return turned * system.bytes_per_sweep + 24 * system.num_states + 16 * HISTORY


def two_vectors(start: FloatArray) -> tuple[Any, Any]:
    """Return the first iterate twice, on the current device.

    Parameters
    ----------
    start
        Shape (states,).
    """
    return to_device(start, np.float64), to_device(start, np.float64)


class CudaSweeper(QueuedSweeps):
    """A solve on the device: two vectors, swapped after each sweep, and CUDA graphs of sweeps."""

    only_in_double = ""
    """Why there are no sweeps in single precision; empty where there are."""

    spare: float = np.inf
    """Bytes of the device that a solve may take beside this."""

    stretches: tuple[int, ...] = (STRETCH, 8)

    def __init__(
        self,
        system: System,
        stop_below: float,
        absolute: bool,
        device_number: int,
        matrix_format: Format = Format.CSR,
        tuning: RowTuning = RowTuning(),
    ) -> None:
        cp = self._cp = cupy()
        self._device, self._tuning = device_number, tuning
        self._stop_below, self._absolute = stop_below, absolute
        self._omega = system.omega
        self._stream = stream(device_number)
        with cp.cuda.Device(device_number), self._stream:
            self._rows: tuple[DeviceRows, ...] = self._prepare(system, matrix_format)
            self._open()

    def _open(self) -> None:
        """Make room for what sweeps note down; nothing has been swept yet."""
        self._make_room()
        self.cost = self._cost()
        self._early = self.cost.bytes_per_sweep >= LONG_SWEEP_BYTES
        self._stream.synchronize()

    def _prepare(self, system: Any, matrix_format: Format) -> tuple[DeviceRows, ...]:
        """Make the vectors, lay the rows out and return them, in one piece or in several."""
        self._vectors = two_vectors(system.start)
        rows = DeviceRows.of(system, matrix_format, self._tuning)
        self._launcher = rows.launcher
        return (rows,)

    def _cost(self) -> SweepCost:
        (rows,) = self._rows
        return SweepCost(
            (self._device,),
            rows.kernel_name,
            str(rows.layout.matrix_format),
            rows.bytes_moved,
            events=rows.events,
            estimates=rows.estimates,
        )

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`."""
        return self._batch(sweeps)

    def _stretch(self, sweeps: int) -> None:
        for t in range(1, sweeps + 1):
            slots = (self._slots[t - 1 : t], self._slots[t : t + 1])
            test = Test(*slots, self._stop_below, self._absolute, self._early)
            self._sweep((self._current + t - 1) % 2, self._omega, test)
        history = (self._slots, self._history, self._length, self._cp.int32(sweeps))
        self._launcher.launch("end_stretch", STRETCH + 1, *history, block=2 * STRETCH)

    def _sweep(self, source: int, omega: float, test: Test) -> None:
        """Queue one sweep of all rows, from one of the two vectors to the other."""
        for rows in self._rows:
            rows.sweep(self._vectors[source], self._vectors[1 - source], omega, test)

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        cp = self._cp
        with cp.cuda.Device(self._device), self._stream:
            slots = cp.zeros(2)
            test = Test(slots[:1], slots[1:], -1.0, True, self._early)
            self._sweep(self._current, 1.0, test)
            return float(slots.get()[1])

    def in_single(self, stop_below: float, nearest: bool, factor: float = 1.0) -> SingleSweeper:
        """Return sweeps in single precision; see `engines.systems.one_sided.HasSingle`.

        Raises
        ------
        UnsupportedError
            For sums of segments or panels, and as `only_in_double` says.
        DeviceMemoryError
            When the device cannot hold a second pair of vectors.
        """
        if self.only_in_double:
            raise UnsupportedError(self.only_in_double)
        try:
            return CudaSingleSweeper(self, stop_below, nearest, factor)
        except self._cp.cuda.memory.OutOfMemoryError as error:
            self._cp.get_default_memory_pool().free_all_blocks()
            raise DeviceMemoryError(f"GPU {self._device} ran out of memory: {error}") from error

    def twin(self, start: FloatArray, stop_below: float) -> CudaSweeper | None:
        """Return sweeps of the same rows from another start; see `systems.one_sided.HasTwin`."""
        if type(self) is not CudaSweeper:
            # Parts of the matrix travel, or lie with others.
            return None
        twin = copy(self)
        twin._stop_below = stop_below
        try:
            with self._cp.cuda.Device(self._device), self._stream:
                twin._vectors = two_vectors(start)
                twin._open()
        except self._cp.cuda.memory.OutOfMemoryError as error:
            self._cp.get_default_memory_pool().free_all_blocks()
            raise DeviceMemoryError(f"GPU {self._device} ran out of memory: {error}") from error
        return twin

    def comparison(self, reference: FloatArray, least: float) -> Callable[[], float] | None:
        """Return what compares the iterate with a vector; see `systems.one_sided.HasComparison`."""
        if type(self) is not CudaSweeper:
            # Parts of the iterate may lie elsewhere.
            return None

        def iterate() -> tuple[Any, float]:
            return self._vectors[self._current], 1.0

        return comparison(self._device, self._stream, iterate, reference, least)

    def restart(self, start: FloatArray) -> None:
        """Go on from another iterate; see `engines.systems.space.HasSpace`."""
        with self._cp.cuda.Device(self._device), self._stream:
            send(start, self._vectors[self._current])
        self._last = None

    def on_device(self) -> tuple[int, Any, Any]:
        """Return where the iterate lies; see `engines.cuda.space.OnDevice`."""
        return self._device, self._stream, self._vectors[self._current]

    def space(self, system: SweepSystem) -> Space:
        """Return a space for GMRES; see `engines.systems.space.HasSpace`."""
        if bytes_needed(system) > self.spare:
            self.cost = replace(self.cost, events=(*self.cost.events, Kind.COMBINED_ON_CPU()))
            return HostSpace(system, self)
        return DeviceSpace(system, self)

    def stop_at(self, stop_below: float) -> None:
        """Stop after the first later sweep whose change is below this; negative for never."""
        self._stop_below = stop_below
        # The threshold is part of what was captured.
        self._graphs = {}

    def go_on_from(self, single: SingleSweeper) -> None:
        """Take over the mean of the last two iterates; see `systems.one_sided.HasSingle`."""
        assert isinstance(single, CudaSingleSweeper)
        with self._cp.cuda.Device(self._device), self._stream:
            single.hand_over(self._vectors[self._current])

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,), on the host."""
        with self._cp.cuda.Device(self._device), self._stream:
            values: FloatArray = to_host(self._vectors[self._current])
        return values


class CudaSingleSweeper(CudaSweeper):
    """A solve on the device with two vectors in single precision.

    Dictionaries of values stay in double precision and are shared; formats in which each entry has
    a value of its own get a copy of the values in single precision.

    Parameters
    ----------
    double
        Sweeps of the system in double precision, whose iterate is where these begin.
    stop_below
        As in `engines.systems.one_sided.Scheme.sweeper`.
    nearest
        Whether what is stored is rounded to nearest; else down.
    factor
        As in `engines.systems.one_sided.HasSingle.in_single`.

    Raises
    ------
    UnsupportedError
        For sums of segments or panels.
    """

    def __init__(
        self, double: CudaSweeper, stop_below: float, nearest: bool, factor: float
    ) -> None:
        cp = self._cp = double._cp
        self._device, self._stream = double._device, double._stream
        self._stop_below, self._absolute = stop_below, double._absolute
        self._omega = double._omega
        with cp.cuda.Device(self._device), self._stream:
            (rows,) = double._rows
            start = double._vectors[double._current]
            (rows,) = self._rows = (rows.in_single(nearest, int(start.size)),)
            self._launcher = rows.launcher
            first = narrowed(start, nearest, rows.launcher, factor)
            self._vectors = (first, first.copy())
            self._open()
        unit = TO_NEAREST if nearest else DOWN
        self._factor = factor
        self.rounding = unit * (2 if rows.layout.matrix_format in OWN_VALUES else 1)

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,), on the host."""
        return np.asarray(super().values(), dtype=np.float64) / self._factor

    def hand_over(self, vector: Any) -> None:
        """Write the mean of the last two iterates to a vector of doubles, on the current stream.

        Parameters
        ----------
        vector
            On the device. States that no row computes keep the values that they have there.
        """
        (rows,) = self._rows
        states, count = rows.device.states, rows.count
        cp = self._cp
        where = (*self._vectors, states, cp.int32(count))
        arguments = (*where, cp.float64(self._factor), vector)
        self._launcher.launch("copy_widened", count, *arguments, module="prepare")
